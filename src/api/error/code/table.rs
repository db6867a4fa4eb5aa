//! The macro that makes codes and their table.

/// A row of the table.
pub(super) struct Row {
    pub(super) code: &'static str,
    pub(super) status: u16,
    pub(super) retry_after_s: Option<u32>,
    pub(super) title: &'static str,
    pub(super) cause: &'static str,
    pub(super) cure: &'static str,
}

macro_rules! codes {
    (@wait) => { None };
    (@wait $seconds:literal) => { Some($seconds) };
    ($($group:literal {
        $($name:ident $code:literal $status:literal $(wait $seconds:literal)? :
            $title:literal, $cause:literal, $cure:literal;)+
    })+) => {
        /// Kind of a refusal, for programs. A published code never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $cause] $name,)+)+
        }

        impl ErrorCode {
            /// All codes, in the order of the table.
            pub const ALL: &[Self] = &[$($(Self::$name,)+)+];

            /// Groups of codes with their titles.
            pub const GROUPS: &[(&str, &[Self])] = &[$(($group, &[$(Self::$name,)+]),)+];

            const fn row(self) -> Row {
                match self {
                    $($(Self::$name => Row {
                        code: $code,
                        status: $status,
                        retry_after_s: codes!(@wait $($seconds)?),
                        title: $title,
                        cause: $cause,
                        cure: $cure,
                    },)+)+
                }
            }
        }
    };
}
