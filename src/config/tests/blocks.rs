//! Blocks without a container, or with several.

use super::problems_of;

#[test]
fn mistakes_in_blocks() {
    let step = |id: &str, rest: &str| format!("{{ id = \"{id}\", {rest} }}");
    let all = |id: &str, names: &str| step(id, &format!("type = \"andAll\", blocks = {names}"));
    let text = format!(
        "[workflows.w]\nsteps = [{}]\n[workflows.w.blocks]\none = [{}]\ntwo = [{}]\nlost = [{}]\n\
         empty = []\n",
        all("a", "[\"one\", \"two\", \"oen\"]"),
        all("b", "[\"one\"]"),
        step("c", "type = \"andWhen\", when = true, block = \"one\""),
        step("d", "map = 1"),
    );
    let place = |line: usize, from: &str| {
        let text = text.lines().nth(line - 1).unwrap();
        format!("c.toml:{line}:{}", text.rfind(from).unwrap() + 1)
    };
    assert_eq!(
        problems_of(&text),
        [
            format!(
                "{}: workflows.w.steps.a.blocks[2]: there is no block oen; did you mean one?",
                place(2, "\"oen\"")
            ),
            format!(
                "{}: workflows.w.blocks.one.b.blocks[0]: block one contains itself",
                place(4, "\"one\"")
            ),
            format!(
                "{}: workflows.w.blocks.two.c.block: block one is already used by the step at \
                 line 2",
                place(5, "\"one\"")
            ),
            "c.toml:6:8: workflows.w.blocks.lost: no step uses this block".to_owned(),
            "c.toml:7:9: workflows.w.blocks.empty: needs at least one step".to_owned(),
            "c.toml:7:9: workflows.w.blocks.empty: no step uses this block".to_owned(),
        ]
    );
}

#[test]
fn nesting_of_blocks_is_limited() {
    let mut text = String::from(
        "[workflows.w]\nsteps = [{ id = \"s\", type = \"andAll\", blocks = [\"b0\"] }]\n\
         [workflows.w.blocks]\n",
    );
    for depth in 0..5000 {
        let next = depth + 1;
        text.push_str(&format!(
            "b{depth} = [{{ id = \"s{depth}\", type = \"andAll\", blocks = [\"b{next}\"] }}]\n"
        ));
    }
    let problems = problems_of(&text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].ends_with("nested deeper than 16 levels"), "{problems:?}");
}

#[test]
fn deep_values_do_not_overflow() {
    let deep = |open: &str, close: &str| {
        format!("[workflows.w]\nresult = {}1{}\n", open.repeat(5000), close.repeat(5000))
    };
    for text in [deep("[", "]"), deep("{a=", "}"), format!("[{}a]\n", "a.".repeat(5000))] {
        assert!(!problems_of(&text).is_empty());
    }
}
