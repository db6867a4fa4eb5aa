//! The file of profiles: servers by name, with their tokens. Only its owner may read it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::exit::{Exit, Failure, quoted};

/// Maximum size of a token: longer headers are refused on the way.
pub(super) const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A token. It is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token(String);

impl Token {
    /// Reads a token without the spaces around it; `None` if nothing is left. Fails if no server
    /// takes such a token.
    pub(super) fn of(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.len() > TOKEN_BYTES_MAX {
            return Err(format!("a token has at most {TOKEN_BYTES_MAX} bytes"));
        }
        if text.contains(char::is_control) {
            return Err("a token is one line, without control characters".to_owned());
        }
        Ok(Some(text).filter(|text| !text.is_empty()).map(|text| Self(text.to_owned())))
    }

    /// Returns the token, to send it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A server with its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Token>,
}

/// Profiles by name.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profiles {
    /// Name of the profile that is used if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<String>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads a file; a missing one has no profiles. Fails if others can read it.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(path, &error)),
        };
        // to open a pipe would wait for a writer
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            let why = "not a file of profiles: a regular file of at most 16 MiB is expected";
            return Err(unusable(path, &io::Error::other(why)));
        }
        check_mode(path, &metadata)?;
        let text = fs::read_to_string(path).map_err(|error| unusable(path, &error))?;
        // the message of the parser would repeat the line, which may have a token
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map(|line| format!(":{line}")).unwrap_or_default();
            Failure::new(Exit::Failed, format!("{}{place}: not a list of profiles", path.display()))
                .advise("mend the file, or remove it and add the profiles again")
        })
    }

    /// Replaces a file as a whole, so that it never has half of its text or other readers. Behind a
    /// link, the file that it leads to.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        self.replace(path).map_err(|error| unusable(path, &error))
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // the name of a link to nothing cannot be kept
                if path.is_symlink() {
                    return Err(io::Error::other("a link that leads to no file"));
                }
                path.to_owned()
            }
            Err(error) => return Err(error),
        };
        let folder = target.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder)?;
        // a temporary file is readable by its owner only
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let text = toml::to_string(self).map_err(io::Error::other)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }
}

fn check_mode(path: &Path, metadata: &fs::Metadata) -> Result<(), Failure> {
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display().to_string();
    let message = format!("{path} has tokens, and other users can read it (mode {mode:04o})");
    let cure = format!("keep them to yourself: chmod 600 {}", quoted(&path));
    Err(Failure::new(Exit::Auth, message).advise(cure))
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
        .advise("XDG_CONFIG_HOME names another folder")
}

/// Returns the place of the file, in the user's folder of configurations.
pub(super) fn default_path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("greenroom/profiles.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles() -> Profiles {
        let profile =
            Profile { server: "https://x.example".to_owned(), token: Token::of(" t-1\n").unwrap() };
        Profiles {
            current: Some("a".to_owned()),
            profiles: BTreeMap::from([("a".to_owned(), profile)]),
        }
    }

    #[test]
    fn profiles_are_written_for_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/profiles.toml");
        assert_eq!(Profiles::read(&path), Ok(Profiles::default()));
        profiles().write(&path).unwrap();
        profiles().write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Profiles::read(&path), Ok(profiles()));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Profiles::read(&path).unwrap_err().to_string();
        assert!(refused.contains("other users can read it (mode 0640)"), "{refused}");
        assert!(refused.contains("chmod 600 "), "{refused}");
    }

    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("kept/file"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let refused = profiles().write(&link).unwrap_err().to_string();
        assert!(refused.contains("a link that leads to no file"), "{refused}");
        profiles().write(&file).unwrap();
        Profiles::default().write(&link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(Profiles::read(&file), Ok(Profiles::default()));
    }

    #[test]
    fn a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("profiles.toml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let refused = Profiles::read(&pipe).unwrap_err().to_string();
        assert!(refused.contains("a regular file"), "{refused}");
    }

    #[test]
    fn a_token_is_one_short_line() {
        for (text, says) in [
            ("x".repeat(TOKEN_BYTES_MAX + 1), "at most 16384 bytes"),
            ("a\nb".to_owned(), "one line"),
            ("a\u{1b}b".to_owned(), "control characters"),
        ] {
            let refused = Token::of(&text).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
        assert_eq!(Token::of(" \n"), Ok(None));
    }

    #[test]
    fn a_token_is_printed_nowhere() {
        assert!(!format!("{:?}", profiles()).contains("t-1"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.toml");
        profiles().write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap().replace("token =", "tokens =");
        fs::write(&path, text).unwrap();
        let refused = Profiles::read(&path).unwrap_err().to_string();
        assert!(refused.contains("profiles.toml:"), "{refused}");
        assert!(!refused.contains("t-1"), "{refused}");
    }
}
