//! Codes of enumerations in columns.

use greenroom_actors::domain::message::Role;
use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::ports::store::{AskKind, AskState, GenerationStatus, Status};

use super::Damaged;

/// Returns the code of a status. Completed has the highest, so that most new rows go to the right
/// edge of indexes by status.
pub fn status_code(status: Status) -> i64 {
    match status {
        Status::Running => 0,
        Status::Suspended => 1,
        Status::Error => 2,
        Status::Cancelled => 3,
        Status::Completed => 4,
    }
}

/// Returns the status that has a code.
pub fn status_of(code: i64) -> Result<Status, Damaged> {
    let found = Status::ALL.into_iter().find(|status| status_code(*status) == code);
    found.ok_or_else(|| unknown(code, "status"))
}

/// Returns the code of a generation's status.
pub fn generation_code(status: GenerationStatus) -> i64 {
    match status {
        GenerationStatus::Working => 0,
        GenerationStatus::Completed => 1,
        GenerationStatus::Error => 2,
        GenerationStatus::Cancelled => 3,
        GenerationStatus::Suspended => 4,
    }
}

/// Returns the generation's status that has a code.
pub fn generation_status_of(code: i64) -> Result<GenerationStatus, Damaged> {
    match code {
        0 => Ok(GenerationStatus::Working),
        1 => Ok(GenerationStatus::Completed),
        2 => Ok(GenerationStatus::Error),
        3 => Ok(GenerationStatus::Cancelled),
        4 => Ok(GenerationStatus::Suspended),
        _ => Err(unknown(code, "status")),
    }
}

/// Returns the code of a kind of asks. Those of failed compensations have that of functions, which
/// older versions read, and differ by their path: see [`ask_kind_at`].
pub fn ask_kind_code(kind: AskKind) -> i64 {
    match kind {
        AskKind::Step => 0,
        AskKind::Function | AskKind::Compensation => 1,
        AskKind::Approval => 2,
        AskKind::Input => 3,
    }
}

/// Returns the kind of asks that has a code.
pub fn ask_kind_of(code: i64) -> Result<AskKind, Damaged> {
    let found = AskKind::ALL.into_iter().find(|kind| ask_kind_code(*kind) == code);
    found.ok_or_else(|| unknown(code, "kind of asks"))
}

/// Returns the kind of an ask from the one of its code. `undoes`: its path is that of a compensation.
pub fn ask_kind_at(of_code: AskKind, undoes: bool) -> AskKind {
    match of_code {
        AskKind::Function if undoes => AskKind::Compensation,
        other => other,
    }
}

/// Returns the code of the state of an ask. Open has the lowest, by which its indexes are partial.
pub fn ask_state_code(state: AskState) -> i64 {
    match state {
        AskState::Open => 0,
        AskState::Answered => 1,
        AskState::Expired => 2,
        AskState::Withdrawn => 3,
    }
}

/// Returns the state of an ask that has a code.
pub fn ask_state_of(code: i64) -> Result<AskState, Damaged> {
    let found = AskState::ALL.into_iter().find(|state| ask_state_code(*state) == code);
    found.ok_or_else(|| unknown(code, "state of an ask"))
}

/// Returns the code of a role.
pub fn role_code(role: Role) -> i64 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

/// Returns the role that has a code.
pub fn role_of(code: i64) -> Result<Role, Damaged> {
    match code {
        0 => Ok(Role::System),
        1 => Ok(Role::User),
        2 => Ok(Role::Assistant),
        3 => Ok(Role::Tool),
        _ => Err(unknown(code, "role")),
    }
}

/// Returns the code of a level; more severe levels have higher codes.
pub fn level_code(level: LogLevel) -> i64 {
    match level {
        LogLevel::Trace => 0,
        LogLevel::Debug => 1,
        LogLevel::Info => 2,
        LogLevel::Warn => 3,
        LogLevel::Error => 4,
    }
}

/// Returns the level that has a code.
pub fn level_of(code: i64) -> Result<LogLevel, Damaged> {
    let found = LogLevel::ALL.into_iter().find(|level| level_code(*level) == code);
    found.ok_or_else(|| unknown(code, "level"))
}

fn unknown(code: i64, kind: &str) -> Damaged {
    Damaged::new(format_args!("{code} is not a {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_as_its_value() {
        for status in Status::ALL {
            assert_eq!(status_of(status_code(status)).unwrap(), status);
        }
        for status in [
            GenerationStatus::Working,
            GenerationStatus::Completed,
            GenerationStatus::Error,
            GenerationStatus::Cancelled,
            GenerationStatus::Suspended,
        ] {
            assert_eq!(generation_status_of(generation_code(status)).unwrap(), status);
        }
        for kind in AskKind::ALL {
            let of_code = ask_kind_of(ask_kind_code(kind)).unwrap();
            assert_eq!(ask_kind_at(of_code, kind == AskKind::Compensation), kind);
        }
        for state in AskState::ALL {
            assert_eq!(ask_state_of(ask_state_code(state)).unwrap(), state);
        }
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            assert_eq!(role_of(role_code(role)).unwrap(), role);
        }
        for level in LogLevel::ALL {
            assert_eq!(level_of(level_code(level)).unwrap(), level);
        }
    }

    #[test]
    fn an_unknown_code_is_named() {
        assert_eq!(status_of(9).unwrap_err().to_string(), "9 is not a status");
        assert_eq!(generation_status_of(-1).unwrap_err().to_string(), "-1 is not a status");
        assert_eq!(ask_kind_of(4).unwrap_err().to_string(), "4 is not a kind of asks");
        assert_eq!(ask_state_of(4).unwrap_err().to_string(), "4 is not a state of an ask");
        assert_eq!(role_of(4).unwrap_err().to_string(), "4 is not a role");
        assert_eq!(level_of(5).unwrap_err().to_string(), "5 is not a level");
    }
}
