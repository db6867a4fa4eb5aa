//! From texts to addresses.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::ChannelBinding;

use super::{Address, AddressError, Host, HostPlace, PORT, Password, Tls};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

const MISPLACED: &str = "`/`, `?` and `@` in a user name or a password must be written as `%2F`, \
                         `%3F` and `%40`";

const SPACE: &str = "has a space before or after it; write `%20` if it belongs there";

/// A part of the text, with its place.
#[derive(Debug, Clone, Copy)]
struct Part<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Part<'t> {
    fn refuse(self, message: &'static str) -> AddressError {
        AddressError { at: self.at, message }
    }

    /// Splits at the first of these characters, which belongs to neither part.
    fn split(self, at: &[char]) -> (Self, Option<Self>) {
        match self.text.find(at) {
            Some(end) => {
                let (head, tail) = (&self.text[..end], &self.text[end + 1..]);
                (Part { text: head, ..self }, Some(Part { text: tail, at: self.at + end + 1 }))
            }
            None => (self, None),
        }
    }

    /// Returns the parts between the separators.
    fn split_all(self, separator: char) -> impl Iterator<Item = Part<'t>> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (part, after) = rest?.split(&[separator]);
            rest = after;
            Some(part)
        })
    }

    /// Decodes `%` and two digits, to a text without control characters.
    fn decoded(self) -> Result<String, AddressError> {
        let decoded = self.bytes()?;
        let text = String::from_utf8(decoded).ok();
        text.filter(|text| !text.contains(char::is_control))
            .ok_or_else(|| self.refuse("has `%` codes of characters that are not allowed here"))
    }

    /// Decodes a name, around which a space is a slip.
    fn decoded_name(self) -> Result<String, AddressError> {
        if self.text.trim() != self.text {
            return Err(self.refuse(SPACE));
        }
        self.decoded()
    }

    fn bytes(self) -> Result<Vec<u8>, AddressError> {
        for (at, _) in self.text.match_indices('%') {
            let digits = self.text.as_bytes().get(at + 1..at + 3);
            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                let place = Part { at: self.at + at, ..self };
                return Err(place.refuse(
                    "`%` must be followed by two hexadecimal digits; `%` itself is written as `%25`",
                ));
            }
        }
        Ok(percent_decode_str(self.text).collect())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Parses `postgres://` or `postgresql://`, then `USER@HOST:PORT,…/DATABASE`, then parameters.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let all = Part { text, at: 0 };
        let scheme = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme));
        let scheme = scheme.ok_or_else(|| all.refuse("must begin with `postgres://`"))?;
        let rest = Part { text: &text[scheme.len()..], at: scheme.len() };
        let end = rest.text.find(['/', '?']).unwrap_or(rest.text.len());
        let authority = Part { text: &rest.text[..end], ..rest };
        let tail = Part { text: &rest.text[end..], at: rest.at + end };
        let (user, hosts) = match authority.split(&['@']) {
            (user, Some(hosts)) if !hosts.text.contains('@') => (user, hosts),
            (_, None) if !tail.text.contains('@') => {
                return Err(authority.refuse("must name a user before the host, as in `user@host`"));
            }
            _ => return Err(authority.refuse(MISPLACED)),
        };
        let (user, password) = user.split(&[':']);
        if user.text.is_empty() {
            return Err(user.refuse("must name a user before the host, as in `user@host`"));
        }
        let hosts = hosts.split_all(',').map(host).collect::<Result<_, _>>()?;
        let (path, parameters) = tail.split(&['?']);
        let name = path.text.strip_prefix('/').filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| path.refuse("must name a database after the host"))?;
        if name.contains(['/', '@']) {
            return Err(path.refuse("has a `/` or `@` in the name of the database"));
        }
        let mut address = Self {
            user: user.decoded_name()?,
            password: password.map(Part::decoded).transpose()?.map(Password),
            hosts,
            database: Part { text: name, at: path.at + 1 }.decoded_name()?,
            tls: None,
            options: None,
            channel_binding: ChannelBinding::Prefer,
        };
        let mut keys = Vec::new();
        for parameter in parameters.into_iter().flat_map(|all| all.split_all('&')) {
            address.set(parameter)?;
            let (key, _) = parameter.split(&['=']);
            if keys.contains(&key.text) {
                return Err(key.refuse("is there a second time; write each parameter once"));
            }
            keys.push(key.text);
        }
        Ok(address)
    }
}

fn host(part: Part<'_>) -> Result<Host, AddressError> {
    let (name, port) = match part.text.strip_prefix('[') {
        // an IPv6 address
        Some(_) => {
            let (name, rest) = Part { text: &part.text[1..], at: part.at + 1 }.split(&[']']);
            let rest = rest.ok_or_else(|| part.refuse("has `[` without `]`"))?;
            if name.text.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(name.refuse("must be an IPv6 address within `[` and `]`"));
            }
            match rest.text.strip_prefix(':') {
                Some(port) => (name, Some(Part { text: port, at: rest.at + 1 })),
                None if rest.text.is_empty() => (name, None),
                None => return Err(rest.refuse("must be `:` and a port, after `]`")),
            }
        }
        None => part.split(&[':']),
    };
    let place = match name.bytes()? {
        folder if folder.first() == Some(&b'/') => {
            HostPlace::Socket(PathBuf::from(OsString::from_vec(folder)))
        }
        _ => {
            let is_name_char = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
            let name_text = name.decoded()?;
            if name_text.is_empty() || !name_text.chars().all(is_name_char) {
                return Err(name.refuse("must be a host name or an IP address"));
            }
            HostPlace::Network(name_text)
        }
    };
    let number = |port: Part<'_>| match port.text.parse::<u16>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(port.refuse("must be a port from 1 to 65535")),
    };
    Ok(Host { place, port: port.map_or(Ok(PORT), number)? })
}

impl Address {
    fn set(&mut self, parameter: Part<'_>) -> Result<(), AddressError> {
        let (key, value) = parameter.split(&['=']);
        let missing = "must be a parameter, as in `sslmode=require`";
        let value = value.ok_or_else(|| key.refuse(missing))?;
        match key.text {
            "sslmode" => {
                self.tls = Some(match value.text {
                    "disable" => Tls::Off,
                    "prefer" => Tls::IfOffered,
                    "require" | "verify-ca" | "verify-full" => Tls::Verified,
                    _ => {
                        let known = "must be disable, prefer, require, verify-ca or verify-full";
                        return Err(value.refuse(known));
                    }
                });
            }
            "options" => self.options = Some(value.decoded()?),
            "channel_binding" => {
                self.channel_binding = match value.text {
                    "disable" => ChannelBinding::Disable,
                    "prefer" => ChannelBinding::Prefer,
                    "require" => ChannelBinding::Require,
                    _ => return Err(value.refuse("must be disable, prefer or require")),
                };
            }
            // every connection is of this kind
            "target_session_attrs" if value.text == "read-write" => {}
            "target_session_attrs" => {
                return Err(value.refuse("must be read-write: a store is written to"));
            }
            "sslrootcert" => {
                return Err(key.refuse("is not a parameter here: set `ca` under [store]"));
            }
            "password" => {
                return Err(key.refuse("is not a parameter here: set `password` under [store]"));
            }
            _ => {
                return Err(key.refuse(
                    "unknown parameter; known ones are sslmode, options, channel_binding and \
                     target_session_attrs",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn addresses_are_shown_without_password_and_parameters() {
        for (text, expected) in [
            ("postgres://ann@db/shop", "postgres://ann@db:5432/shop"),
            ("postgresql://ann:pw@db:1/shop", "postgres://ann@db:1/shop"),
            ("postgres://a%40b:p%2F%3A@db1,db2:2/x%20y", "postgres://a@b@db1:5432,db2:2/x y"),
            ("postgres://ann@[::1]:7,10.0.0.1/shop", "postgres://ann@[::1]:7,10.0.0.1:5432/shop"),
            (
                "postgres://ann@%2Frun%2Fpg:7/s?options=-c%20a%3Db",
                "postgres://ann@/run/pg/.s.PGSQL.7/s",
            ),
        ] {
            assert_eq!(parsed(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn values_are_decoded() {
        let address = parsed(
            "postgres://u:p%40ss%25@db/d?options=-c%20search_path%3Dmine&channel_binding=require",
        );
        assert_eq!(address.password, Some(Password("p@ss%".to_owned())));
        assert_eq!(address.options.as_deref(), Some("-c search_path=mine"));
        assert_eq!(address.channel_binding, ChannelBinding::Require);
        assert!(!format!("{address:?}").contains("p@ss"), "{address:?}");
        assert_eq!(parsed("postgres://%20u@db/d%20").to_string(), "postgres:// u@db:5432/d ");
        assert_eq!(parsed("postgres://u:a:b@db/d").password, Some(Password("a:b".to_owned())));
    }

    #[test]
    fn connections_to_other_machines_are_encrypted() {
        use Tls::{IfOffered, Off, Verified};
        let hosts = "localhost,127.0.0.1,[::1],%2Frun,db,10.0.0.1";
        for (parameters, expected) in [
            ("", [Off, Off, Off, Off, Verified, Verified]),
            ("?sslmode=disable", [Off; 6]),
            ("?sslmode=prefer", [IfOffered, IfOffered, IfOffered, Off, IfOffered, IfOffered]),
            ("?sslmode=require", [Verified, Verified, Verified, Off, Verified, Verified]),
            ("?sslmode=verify-full", [Verified, Verified, Verified, Off, Verified, Verified]),
        ] {
            let address = parsed(&format!("postgres://u@{hosts}/d{parameters}"));
            assert_eq!(address.tls().collect::<Vec<_>>(), expected, "{parameters}");
        }
    }

    #[test]
    fn refusals_name_the_place_and_repeat_nothing() {
        for (text, at, message) in [
            ("mysql://u@h/d", "mysql", "must begin with `postgres://`"),
            ("postgres://db/d", "db/", "must name a user before the host"),
            ("postgres://:hidden@db/d", ":hidden", "must name a user before the host"),
            ("postgres://u:hid@den@db/d", "u:hid", "`/`, `?` and `@` in a user name"),
            ("postgres://u:hid/den@db/d", "u:hid", "`/`, `?` and `@` in a user name"),
            ("postgres://u:hid?den@db/d", "u:hid", "`/`, `?` and `@` in a user name"),
            ("postgres://u:hid%xen@db/d", "%xen", "`%` must be followed by two"),
            ("postgres://u:hidden%00@db/d", "hidden", "has `%` codes of characters"),
            ("postgres://u:hidden@db", "", "must name a database after the host"),
            ("postgres://u:hidden@db/", "/", "must name a database after the host"),
            ("postgres://u@db/d/e", "/d/e", "has a `/` or `@` in the name"),
            ("postgres://u@/d", "/d", "must be a host name"),
            ("postgres://u@db1,,db2/d", ",db2", "must be a host name"),
            ("postgres://u@d b/d", "d b", "must be a host name"),
            ("postgres://u@db:x/d", "x/d", "must be a port from 1 to 65535"),
            ("postgres://u@db:0/d", "0/d", "must be a port from 1 to 65535"),
            ("postgres://u@db:65536/d", "65536", "must be a port from 1 to 65535"),
            ("postgres://u@[::1/d", "[::1", "has `[` without `]`"),
            ("postgres://u@[db]/d", "db]", "must be an IPv6 address"),
            ("postgres://u@[::1]7/d", "7/d", "must be `:` and a port"),
            ("postgres://u@db/d?sslmode", "sslmode", "must be a parameter"),
            ("postgres://u@db/d?", "", "must be a parameter"),
            ("postgres://u@db/d?sslmode=allow", "allow", "must be disable, prefer, require"),
            ("postgres://u@db/d?sslmod=require", "sslmod=", "unknown parameter; known ones"),
            ("postgres://u@db/d?options=x&port=1", "port=1", "unknown parameter"),
            ("postgres:// u:hidden@db/d", " u:hid", "has a space before or after it"),
            ("postgres://u :hidden@db/d", "u :hid", "has a space before or after it"),
            ("postgres://u@db/d ?options=x", "d ?", "has a space before or after it"),
            ("postgres://u@db/d?options=a&sslmode=prefer&options=b", "options=b", "second time"),
            ("postgres://u@db/d?password=hidden", "password=", "set `password` under [store]"),
            ("postgres://u@db/d?sslrootcert=x", "sslrootcert", "set `ca` under [store]"),
            ("postgres://u@db/d?channel_binding=x", "x", "must be disable, prefer or require"),
            ("postgres://u@db/d?target_session_attrs=any", "any", "must be read-write"),
        ] {
            let refused = text.parse::<Address>().unwrap_err();
            assert!(refused.message.contains(message), "{text}: {refused}");
            let place = if at.is_empty() { text.len() } else { text.rfind(at).unwrap() };
            assert_eq!(refused.at, place, "{text}: {refused}");
            assert!(!refused.to_string().contains("hid"), "{text}: {refused}");
        }
    }
}
