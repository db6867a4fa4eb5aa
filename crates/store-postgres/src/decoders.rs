//! Threads that decode large results.

use std::io;

use greenroom_actors::threads;

use crate::pool::Failure;

/// Maximum bytes that are decoded on the caller's thread, which drives actors or connections.
const HERE_MAX: usize = 64 * 1024;
/// Maximum number of results that are decoded at once.
const THREADS_MAX: usize = 4;

/// Threads that decode large results.
pub(crate) struct Decoders(threads::Pool);

impl Decoders {
    /// Starts the first thread.
    pub(crate) fn start() -> io::Result<Self> {
        threads::Pool::start("store-decoder", THREADS_MAX).map(Self)
    }

    /// Decodes so many bytes: a few here, many on one of the threads.
    pub(crate) async fn decode<T: Send + 'static>(
        &self,
        bytes: usize,
        decode: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if bytes <= HERE_MAX {
            return decode();
        }
        self.0.run(decode).await.unwrap_or_else(|error| Err(Failure::Stopped(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_many_bytes_are_decoded_on_another_thread() {
        let decoders = Decoders::start().unwrap();
        let here = std::thread::current().id();
        for (bytes, is_here) in [(0, true), (HERE_MAX, true), (HERE_MAX + 1, false)] {
            let thread = decoders.decode(bytes, || Ok(std::thread::current().id())).await.unwrap();
            assert_eq!(thread == here, is_here, "{bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_decoder_that_panics_fails_alone() {
        let decoders = Decoders::start().unwrap();
        let failed = decoders.decode::<()>(HERE_MAX + 1, || panic!("boom")).await.unwrap_err();
        assert!(matches!(&failed, Failure::Stopped(_)) && !failed.is_passing(), "{failed}");
        assert_eq!(decoders.decode(HERE_MAX + 1, || Ok(1)).await.unwrap(), 1);
    }
}
