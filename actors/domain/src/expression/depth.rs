//! How deep a source is, counted before the engine takes it apart.
//!
//! The engine reads, compiles and drops operations one inside the other, a chain of them too, and
//! so does whoever walks the tree: each takes some of the thread's stack. It bounds brackets only.

use minijinja::machinery::{Token, tokenize};

/// How many operations and look-ups may be one inside the other, brackets counted as well.
pub(super) const DEPTH_MAX: usize = 500;

/// How many `elif` a template may have, each of which is inside of the one before.
const CHOICES_MAX: usize = 500;

/// How deep the brackets may be of all blocks together that give a name to a value: each may have the
/// value before in it, and values are dropped one inside the other as well.
const NESTED_MAX: usize = 500;

/// Whether a source is deeper than the engine should be given. What is no source at all is left for
/// the engine to refuse.
pub(super) fn is_too_deep(source: &str, is_expression: bool) -> bool {
    // an operator takes a byte at least
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

/// What blocks of a template add to one another.
#[derive(Default)]
struct Blocks {
    /// The next token says what the block is.
    is_beginning: bool,
    /// It gives a name to a value.
    is_naming: bool,
    /// The deepest of its brackets.
    brackets: usize,
    choices: usize,
    /// The brackets of all blocks that give names.
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

/// How deep the operation is that the last token belongs to, or one before it in its brackets.
#[derive(Default)]
struct Depth {
    /// Inside the brackets that are open.
    here: Level,
    /// Around them, and how deep those are together.
    around: Vec<Level>,
    around_chains: usize,
}

/// What is between two brackets, or two commas.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Operators between operands, and before them.
    chain: usize,
    /// Look-ups, calls and filters behind the last operand.
    behind: usize,
    /// Of the deepest brackets of the last operand.
    inside: usize,
    /// The deepest of the operands before it.
    operand: usize,
    /// The deepest of what stands before a comma.
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

    /// The depth of an expression.
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
    fn what_is_inside_of_something_else_is_counted() {
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

    /// Chains of each kind with so many links.
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
    fn chains_are_bounded_and_those_that_are_taken_fit_a_small_stack() {
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
    fn blocks_are_bounded() {
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
        assert_eq!(rendered.as_deref(), Ok("true"), "what is made of it fits the stack, too");
    }

    #[test]
    fn what_is_long_and_not_deep_is_taken() {
        let list = format!("[{}]", vec!["a.b + 1"; 800].join(", "));
        Expression::compile(&list).unwrap();
        let template = "{{ a.b }} {% if a[0] %}{% set c = a.b + 1 %}{% endif %}".repeat(600);
        Template::compile(&template).unwrap();
    }
}
