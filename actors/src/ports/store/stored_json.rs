//! Parser for stored JSON.
//!
//! Stored JSON may nest deeper than is accepted now: earlier versions accepted values whose rows
//! nest slightly deeper than a parser's usual limit, and let loops nest their own outputs.

use std::thread::{Builder, scope};

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Deserializer, Error};

use crate::domain::nesting::depth_exceeded_at;

/// Maximum nesting: such a value can be cloned, written and dropped on any thread.
pub const STORED_DEPTH_MAX: usize = 1_000;

/// Default nesting limit of the parser.
const PARSER_DEPTH_MAX: usize = 127;

/// Stack of the thread that parses deep values; only used pages take memory.
const STACK_BYTES: usize = 32 << 20;

/// Parses stored JSON.
pub fn read_stored<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, Error> {
    match serde_json::from_slice(bytes) {
        Err(error) if error.is_syntax() && depth_exceeded_at(bytes, PARSER_DEPTH_MAX).is_some() => {
            read_deep(bytes)
        }
        read => read,
    }
}

/// Parses on a thread with a large stack. Few rows need it.
#[cold]
fn read_deep<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, Error> {
    if depth_exceeded_at(bytes, STORED_DEPTH_MAX).is_some() {
        return Err(Error::custom(format!("nested deeper than {STORED_DEPTH_MAX} levels")));
    }
    let parse = || {
        let mut source = Deserializer::from_slice(bytes);
        source.disable_recursion_limit();
        let read = T::deserialize(&mut source)?;
        source.end().map(|()| read)
    };
    scope(|threads| {
        let parser = Builder::new().name("deep-reader".to_owned()).stack_size(STACK_BYTES);
        let parsing = parser.spawn_scoped(threads, parse).map_err(Error::custom)?;
        parsing.join().unwrap_or_else(|_| Err(Error::custom("the parser panicked")))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::nesting::depth_of;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn stored_values_are_read_up_to_the_maximum_nesting() {
        for levels in [0, 127, 128, 129, STORED_DEPTH_MAX] {
            let read: Value = read_stored(nested(levels).as_bytes()).unwrap();
            assert_eq!(depth_of(&read), levels);
            // cloning and writing must work on an ordinary thread
            assert_eq!(read.clone().to_string(), nested(levels));
        }
        let refused = read_stored::<Value>(nested(STORED_DEPTH_MAX + 1).as_bytes()).unwrap_err();
        assert!(refused.to_string().starts_with("nested deeper than 1000 levels"), "{refused}");
    }

    #[test]
    fn invalid_json_is_refused_deep_or_not() {
        for levels in [3, 200] {
            let whole = nested(levels);
            for broken in [&whole[1..], &whole[..whole.len() - 1], &format!("{whole} 1")] {
                assert!(read_stored::<Value>(broken.as_bytes()).is_err(), "{levels}: {broken}");
            }
        }
        assert_eq!(read_stored::<Value>(b"{\"a\":1}").unwrap(), json!({ "a": 1 }));
        assert!(read_stored::<bool>(b"[]").is_err());
    }
}
