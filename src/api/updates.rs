//! Use cases of `/updates`: check for newer versions and install them.

use semver::Version;

use crate::api::error::{ApiError, SystemFailure};
use crate::api::ids::wrong_with_line;
use crate::api::json;
use crate::api::wire::system::{InstallBody, InstalledView, UpdateKind, UpdateView, UpdatesView};
use crate::maintenance::{INSTALLED, Installation, Maintenance, PACKAGE};

/// Maximum length of the name of a package, in characters.
const NAME_CHARS_MAX: usize = 200;

/// Checks for a version newer than the running one.
pub async fn check(maintenance: &Maintenance) -> Result<UpdatesView, ApiError> {
    let installed = Version::parse(INSTALLED).map_err(|error| {
        log::error!("bug in the server: its version {INSTALLED} is invalid: {error}");
        ApiError::Internal
    })?;
    match maintenance.published().await {
        Some(Ok(published)) => Ok(overview(installed, Some(&published))),
        Some(Err(error)) => Err(SystemFailure::Unchecked(error).into()),
        None => Ok(overview(installed, None)),
    }
}

/// Refuses if no install command is configured. Handlers call it before they read the body.
pub fn installable(maintenance: &Maintenance) -> Result<(), ApiError> {
    if maintenance.can_install() { Ok(()) } else { Err(SystemFailure::NoCommand.into()) }
}

/// Installs the newest version of this program, the only package that a body can name.
pub async fn install(maintenance: &Maintenance, body: &[u8]) -> Result<InstalledView, ApiError> {
    let package_name = named(body)?;
    match maintenance.install().await {
        Installation::Done(Ok(())) => {
            let message = format!("{PACKAGE} was installed; restart the server to use it");
            Ok(InstalledView { message, package_name })
        }
        Installation::Done(Err(error)) => Err(SystemFailure::NotInstalled(error).into()),
        Installation::Busy => Err(SystemFailure::Installing.into()),
        Installation::Off => Err(SystemFailure::NoCommand.into()),
    }
}

/// Reads the package of a body: this one or none.
fn named(body: &[u8]) -> Result<Option<String>, ApiError> {
    let InstallBody { package_name } = json::parse_or_empty(body)?;
    let Some(name) = package_name else { return Ok(None) };
    if let Some(what) = wrong_with_line(&name, NAME_CHARS_MAX) {
        return Err(ApiError::body("packageName", what));
    }
    if name == PACKAGE { Ok(Some(name)) } else { Err(SystemFailure::UnknownPackage(name).into()) }
}

fn overview(installed: Version, published: Option<&[Version]>) -> UpdatesView {
    let newer = newest_after(&installed, published.unwrap_or_default());
    let message = match (&newer, published) {
        (Some(newer), _) => format!("{PACKAGE} {newer} is available, {installed} is installed"),
        (None, Some(_)) => format!("{PACKAGE} {installed} is the newest version"),
        (None, None) => {
            "No registry is configured to check for updates; set registry under [updates]"
                .to_owned()
        }
    };
    let kind = newer.map_or(UpdateKind::Latest, |newer| kind_of(&installed, newer));
    let latest = newer.unwrap_or(&installed).clone();
    let has_updates = newer.is_some();
    UpdatesView {
        has_updates,
        updates: vec![UpdateView { name: PACKAGE, installed, latest, kind }],
        count: usize::from(has_updates),
        message,
    }
}

/// Returns the newest version above the installed one. Pre-releases count only if the installed one
/// is a pre-release.
fn newest_after<'v>(installed: &Version, published: &'v [Version]) -> Option<&'v Version> {
    let is_offered = |version: &&Version| version.pre.is_empty() || !installed.pre.is_empty();
    let newest = published.iter().filter(is_offered).max_by(|one, other| one.cmp_precedence(other));
    newest.filter(|version| version.cmp_precedence(installed).is_gt())
}

fn kind_of(installed: &Version, newer: &Version) -> UpdateKind {
    if newer.major != installed.major {
        UpdateKind::Major
    } else if newer.minor != installed.minor {
        UpdateKind::Minor
    } else {
        UpdateKind::Patch
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn only_a_newer_version_is_an_update() {
        let rows: [(&str, &[&str], &str, UpdateKind); 16] = [
            ("0.1.0", &[], "0.1.0", UpdateKind::Latest),
            ("0.1.0", &["0.1.0"], "0.1.0", UpdateKind::Latest),
            ("0.2.0", &["0.1.0", "0.1.9"], "0.2.0", UpdateKind::Latest),
            ("0.1.0", &["0.1.1"], "0.1.1", UpdateKind::Patch),
            ("0.1.9", &["0.1.10", "0.1.2"], "0.1.10", UpdateKind::Patch),
            ("0.1.0", &["0.2.0", "0.1.5"], "0.2.0", UpdateKind::Minor),
            ("1.2.3", &["10.0.0", "9.9.9", "2.0.0"], "10.0.0", UpdateKind::Major),
            // pre-releases are offered only to pre-releases
            ("0.1.0", &["0.2.0-rc.1"], "0.1.0", UpdateKind::Latest),
            ("0.1.0", &["0.2.0-rc.1", "0.1.1"], "0.1.1", UpdateKind::Patch),
            ("0.2.0-rc.1", &["0.2.0-rc.2"], "0.2.0-rc.2", UpdateKind::Patch),
            ("0.2.0-rc.9", &["0.2.0-rc.10"], "0.2.0-rc.10", UpdateKind::Patch),
            ("0.2.0-rc.1", &["0.2.0"], "0.2.0", UpdateKind::Patch),
            ("0.2.0-rc.1", &["0.3.0-alpha"], "0.3.0-alpha", UpdateKind::Minor),
            ("0.2.0-rc.1", &["0.1.9"], "0.2.0-rc.1", UpdateKind::Latest),
            // build metadata does not make a version newer
            ("0.1.0", &["0.1.0+b2"], "0.1.0", UpdateKind::Latest),
            ("0.1.0+b1", &["0.1.1+b0"], "0.1.1+b0", UpdateKind::Patch),
        ];
        for (installed, published, latest, kind) in rows {
            let published: Vec<_> = published.iter().map(|text| version(text)).collect();
            let view = overview(version(installed), Some(&published));
            let update = &view.updates[0];
            assert_eq!(
                (update.latest.to_string().as_str(), update.kind),
                (latest, kind),
                "{installed} and {published:?}"
            );
            let has_updates = kind != UpdateKind::Latest;
            assert_eq!((view.has_updates, view.count), (has_updates, usize::from(has_updates)));
        }
    }

    #[test]
    fn an_overview_has_its_wire_format() {
        let view = overview(version("0.1.0"), Some(&[version("1.0.0")]));
        let expected = json!({
            "hasUpdates": true,
            "updates": [
                { "name": "greenroom", "installed": "0.1.0", "latest": "1.0.0", "type": "major" }
            ],
            "count": 1,
            "message": "greenroom 1.0.0 is available, 0.1.0 is installed",
        });
        assert_eq!(serde_json::to_value(&view).unwrap(), expected);
    }

    #[test]
    fn without_a_registry_there_are_no_updates() {
        let view = overview(version("0.1.0"), None);
        let update = &view.updates[0];
        assert_eq!((view.has_updates, view.count, update.kind), (false, 0, UpdateKind::Latest));
        assert_eq!(update.latest, update.installed);
        assert!(view.message.starts_with("No registry is configured"), "{}", view.message);
    }

    #[test]
    fn a_body_names_this_package_or_none() {
        const WHAT: &str = "Invalid request body: packageName: must be 1 to 200 characters, no \
                            control characters";
        let long = format!("{{\"packageName\":\"{}\"}}", "x".repeat(201));
        let rows: [(&str, Result<Option<&str>, &str>); 10] = [
            ("", Ok(None)),
            (" {} ", Ok(None)),
            (r#"{"packageName":null}"#, Ok(None)),
            (r#"{"packageName":"greenroom","more":1}"#, Ok(Some("greenroom"))),
            (r#"{"packageName":"@a/b"}"#, Err("Package @a/b not found")),
            (r#"{"packageName":"greenroom; rm"}"#, Err("Package greenroom; rm not found")),
            (r#"{"packageName":""}"#, Err(WHAT)),
            (r#"{"packageName":"a\nb"}"#, Err(WHAT)),
            (&long, Err(WHAT)),
            (
                r#"{"packageName":7}"#,
                Err("Invalid request body: packageName: invalid type: integer `7`, expected a \
                     string"),
            ),
        ];
        for (body, expected) in rows {
            let found = named(body.as_bytes()).map_err(|refusal| refusal.to_string());
            let expected = expected.map(|name| name.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(found, expected, "{body}");
        }
    }
}
