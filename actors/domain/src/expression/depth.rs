//! Depth of a source, checked before the engine parses it.
//!
//! The engine parses, compiles and drops nested and chained operations recursively, and so do
//! walks of its tree: each level takes some of the thread's stack. The engine limits brackets only.

use minijinja::machinery::{Token, tokenize};

/// Maximum nesting of operations and lookups, including brackets.
pub(super) const DEPTH_MAX: usize = 500;

/// Maximum number of `elif` in a template; each is nested in the one before.
const CHOICES_MAX: usize = 500;

/// Maximum total depth of brackets in all blocks that assign a name: each value may contain the one
/// before, and nested values are dropped recursively.
const NESTED_MAX: usize = 500;

/// Returns true if a source is too deep for the engine. Leaves invalid sources to the engine.
pub(super) fn is_too_deep(source: &str, is_expression: bool) -> bool {
    // an operator takes at least one byte
    if source.len() <= DEPTH_MAX {
        return false;
    }
    let mut depth = Depth::default();
    let mut blocks = Blocks::default();
    for token in tokenize(source, is_expression, Default::default()) {
        let Ok((token, _)) = token else { return false };
        depth.take(&token);
        blocks.take(&token, depth.around.len());
        if depth.now() > DEPTH_MAX || blocks.are_too_many() {
            return true;
        }
    }
    false
}

/// Nesting that results from blocks of a template.
#[derive(Default)]
struct Blocks {
    /// True if the next token is the keyword of a block.
    is_beginning: bool,
    /// True if the block assigns a name.
    is_naming: bool,
    /// Depth of its brackets.
    brackets: usize,
    choices: usize,
    /// Total depth of the brackets in all blocks that assign names.
    nested: usize,
}

impl Blocks {
    fn take(&mut self, token: &Token<'_>, brackets: usize) {
        let is_first = std::mem::take(&mut self.is_beginning);
        match token {
            Token::BlockStart => {
                *self = Self { is_beginning: true, is_naming: false, brackets: 0, ..*self };
            }
            Token::BlockEnd if self.is_naming => self.nested += self.brackets,
            Token::Ident("elif") if is_first => self.choices += 1,
            Token::Ident("set" | "with" | "for") if is_first => self.is_naming = true,
            _ => self.brackets = self.brackets.max(brackets),
        }
    }

    fn are_too_many(&self) -> bool {
        self.choices > CHOICES_MAX || self.nested > NESTED_MAX
    }
}

/// Depth of the current operation, or of one before it in the same brackets.
#[derive(Default)]
struct Depth {
    /// Level inside the innermost open brackets.
    here: Level,
    /// Levels around it, and their total depth.
    around: Vec<Level>,
    around_chains: usize,
}

/// Content between two brackets or commas.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Number of operators between and before operands.
    chain: usize,
    /// Number of lookups, calls and filters after the last operand.
    behind: usize,
    /// Depth of the brackets of the last operand.
    inside: usize,
    /// Depth of the operands before it.
    operand: usize,
    /// Depth of the contents before the last comma.
    before: usize,
}

impl Level {
    fn depth(self) -> usize {
        self.before.max(self.chain + self.operands())
    }

    fn operands(self) -> usize {
        self.operand.max(self.behind + self.inside)
    }
}

impl Depth {
    fn now(&self) -> usize {
        self.around_chains + self.here.depth()
    }

    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::TemplateData(_)
            | Token::VariableStart
            | Token::VariableEnd
            | Token::BlockStart
            | Token::BlockEnd => *self = Self::default(),
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => self.open(),
            Token::BracketClose | Token::ParenClose | Token::BraceClose => self.close(),
            Token::Comma | Token::Colon => {
                self.here = Level { before: self.here.depth(), ..Level::default() };
            }
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::FloorDiv
            | Token::Pow
            | Token::Mod
            | Token::Tilde
            | Token::Eq
            | Token::Ne
            | Token::Gt
            | Token::Gte
            | Token::Lt
            | Token::Lte
            | Token::Ident("and" | "or" | "not" | "in" | "if" | "else") => {
                let Level { chain, before, .. } = self.here;
                let operand = self.here.operands();
                self.here = Level { chain: chain + 1, operand, before, ..Level::default() };
            }
            Token::Dot | Token::Pipe | Token::Ident("is") => self.here.behind += 1,
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Assign => {}
        }
    }

    fn open(&mut self) {
        self.here.behind += 1;
        self.around_chains += self.here.chain + self.here.behind;
        self.around.push(std::mem::take(&mut self.here));
    }

    fn close(&mut self) {
        let closed = self.here.depth();
        let Some(around) = self.around.pop() else { return };
        self.around_chains -= around.chain + around.behind;
        self.here = Level { inside: around.inside.max(closed), ..around };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Expression, Scope, Template};

    /// Returns the depth of an expression.
    fn depth_of(source: &str) -> usize {
        let mut depth = Depth::default();
        let tokens = tokenize(source, true, Default::default());
        tokens
            .map(|token| {
                depth.take(&token.unwrap().0);
                depth.now()
            })
            .max()
            .unwrap()
    }

    #[test]
    fn nested_operations_are_counted() {
        let rows = [
            ("a", 0),
            ("a.b[0]", 2),
            ("a + b + c", 2),
            ("a.b.c + a.b + a.b.c", 4),
            ("a is odd and b | f(c)", 3),
            ("not not -a", 3),
            ("[a + 1, b + 1, c]", 2),
            ("{'a': b.c, 'd': e | f(1 + 2)}", 4),
            ("(a + b) * (c + d + e)", 4),
            ("f(a)(b)(c)", 3),
            ("[[[a]]] + [b]", 4),
            ("a if b else c", 2),
        ];
        for (source, depth) in rows {
            assert_eq!(depth_of(source), depth, "{source}");
        }
    }

    /// Returns chains of each kind with this number of links.
    fn chains(links: usize) -> Vec<String> {
        let behind = |first: &str, link: &str| format!("{first}{}", link.repeat(links));
        let before = |link: &str| format!("{}n", link.repeat(links));
        vec![
            behind("n", " + n"),
            behind("n", " - n"),
            behind("n", "~n"),
            behind("n", "*n"),
            behind("n", "**n"),
            behind("n", " and n"),
            behind("n", " or n"),
            behind("n", "<n"),
            behind("n", "|abs"),
            behind("n", ".n"),
            behind("n", "[0]"),
            behind("n", "[:]"),
            behind("n", "()"),
            before("not "),
            before("-"),
        ]
    }

    #[test]
    fn chains_are_limited_and_accepted_ones_fit_a_small_stack() {
        let said = "chained or nested more than 500 deep; split it into several steps in `";
        for source in chains(DEPTH_MAX) {
            let expression = Expression::compile(&source).unwrap();
            expression.reading();
            let template = Template::compile(&format!("{{{{ {source} }}}}")).unwrap();
            template.reading();
        }
        for source in chains(DEPTH_MAX + 1) {
            let refused = Expression::compile(&source).unwrap_err();
            assert!(refused.to_string().starts_with(said), "{refused}");
            let refused = Template::compile(&format!("a{{{{ {source} }}}}")).unwrap_err();
            assert!(refused.to_string().starts_with(said), "{refused}");
        }
    }

    #[test]
    fn blocks_are_limited() {
        let choice = |count| format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(count));
        let sets = |count| format!("{{% set a = 1 %}}{}", "{% set a = [a] %}".repeat(count));
        let deeper = |count| "{% with a = [[[[[a]]]]], b = [1] %}{% endwith %}".repeat(count / 5);
        for (source, most) in
            [(choice as fn(usize) -> String, CHOICES_MAX), (sets, NESTED_MAX), (deeper, NESTED_MAX)]
        {
            let template = Template::compile(&source(most)).unwrap();
            template.reading();
            let refused = Template::compile(&source(most + 5)).unwrap_err();
            assert!(refused.to_string().starts_with("chained or nested more than"), "{refused}");
        }
        let (scope, nested) = (Scope::new(), format!("{}{{{{ a == a }}}}", sets(NESTED_MAX)));
        let rendered = Template::compile(&nested).unwrap().render(&scope);
        assert_eq!(rendered.as_deref(), Ok("true"), "comparing the result fits the stack, too");
    }

    #[test]
    fn long_sources_that_are_not_deep_are_accepted() {
        let list = format!("[{}]", vec!["a.b + 1"; 800].join(", "));
        Expression::compile(&list).unwrap();
        let template = "{{ a.b }} {% if a[0] %}{% set c = a.b + 1 %}{% endif %}".repeat(600);
        Template::compile(&template).unwrap();
    }
}
