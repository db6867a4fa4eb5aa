//! The installed PostgreSQL, and the account that may run it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest version that the store runs on.
const VERSION_MIN: u32 = 15;
const PROGRAMS: [&str; 4] = ["postgres", "initdb", "pg_ctl", "psql"];
/// Debian has a folder for each version here, which is not on `PATH`.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Accounts to run it under, the first that exists: PostgreSQL refuses to run as root.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// Programs of PostgreSQL.
#[derive(Debug)]
pub(super) struct Installed {
    folder: PathBuf,
    /// User and group; `None` for those of this process.
    account: Option<(u32, u32)>,
}

impl Installed {
    /// Returns the first PostgreSQL on `PATH`, or else the newest of Debian's; the error says what
    /// to install.
    pub(super) fn find() -> Result<Self, String> {
        let wanted = format!("Install PostgreSQL {VERSION_MIN} or newer (package postgresql).");
        let folder = folders().into_iter().find(|folder| has_programs(folder)).ok_or(&*wanted)?;
        let postgres = Command::new(folder.join("postgres")).arg("--version").output();
        let version = postgres.map_err(|error| error.to_string())?.stdout;
        let version = String::from_utf8_lossy(&version);
        if major(&version).is_none_or(|major| major < VERSION_MIN) {
            return Err(format!("{} is {}. {wanted}", folder.display(), version.trim()));
        }
        if !is_root() {
            return Ok(Self { folder, account: None });
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let account = account(&accounts);
        let missing = || format!("As root, one of the accounts {ACCOUNTS:?} is needed.");
        Ok(Self { folder, account: Some(account.ok_or_else(missing)?) })
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    pub(super) fn command(&self, program: &str) -> Command {
        self.by_account(Command::new(self.path(program)))
    }

    /// Returns the command of a script; its arguments begin with `$0`.
    pub(super) fn shell(&self, script: &str) -> Command {
        let mut shell = self.by_account(Command::new("sh"));
        shell.args(["-c", script]);
        shell
    }

    fn by_account(&self, mut command: Command) -> Command {
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }

    /// Gives a file or folder to the account.
    pub(super) fn give(&self, path: &Path) {
        if let Some((user, group)) = self.account {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }
}

/// Returns the folders to look into.
fn folders() -> Vec<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path);
    // a link may stand for one program alone: the others are where it leads
    let linked = on_path.filter_map(|folder| folder.join("postgres").canonicalize().ok());
    let mut folders: Vec<_> =
        linked.filter_map(|program| program.parent().map(Path::to_owned)).collect();
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    folders.extend(newest_first(versions.map(|it| it.path())).map(|version| version.join("bin")));
    folders
}

/// Returns true if this process is root's, as its files show.
fn is_root() -> bool {
    tempfile::tempfile().and_then(|file| file.metadata()).unwrap().uid() == 0
}

fn has_programs(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).is_file())
}

/// Sorts folders that are named after versions.
fn newest_first(folders: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = PathBuf> {
    let number = |name: &OsStr| name.to_str()?.parse::<u32>().ok();
    let mut numbered: Vec<_> =
        folders.filter_map(|folder| Some((number(folder.file_name()?)?, folder))).collect();
    numbered.sort_unstable();
    numbered.into_iter().rev().map(|(_, folder)| folder)
}

/// Reads `postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)`.
fn major(version: &str) -> Option<u32> {
    let number = version.strip_prefix("postgres (PostgreSQL) ")?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok()
}

/// Returns user and group of the first account in a text like `/etc/passwd`.
fn account(accounts: &str) -> Option<(u32, u32)> {
    ACCOUNTS.iter().find_map(|wanted| {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_it = fields.next() == Some(*wanted);
            let (user, group) = (fields.nth(1)?, fields.next()?);
            Some((user.parse().ok()?, group.parse().ok()?)).filter(|_| is_it)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first() {
        let folders = ["/p/9.6", "/p/16", "/p/15", "/p/9", "/p/bin", "/p/101"].map(PathBuf::from);
        let sorted: Vec<_> = newest_first(folders.into_iter()).collect();
        assert_eq!(sorted, ["/p/101", "/p/16", "/p/15", "/p/9"].map(PathBuf::from));
    }

    #[test]
    fn versions_are_read() {
        for (said, expected) in [
            ("postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18\n", Some(18)),
            ("postgres (PostgreSQL) 19beta1\n", Some(19)),
            ("postgres (PostgreSQL) 9.6.24\n", Some(9)),
            ("psql 15", None),
            ("", None),
        ] {
            assert_eq!(major(said), expected, "{said}");
        }
    }

    #[test]
    fn the_account_of_postgresql_is_preferred() {
        let nobody = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/bin/false\n";
        let both = format!("{nobody}\nnot a line\npostgres:x:101:104:,,,:/var/lib:/bin/bash\n");
        assert_eq!(account(nobody), Some((65534, 65533)));
        assert_eq!(account(&both), Some((101, 104)));
        assert_eq!(account("root:x:0:0:root:/root:/bin/bash"), None);
    }
}
