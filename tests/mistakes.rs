//! Messages of the compiler for common mistakes in programs that use the library: each names what to
//! write instead. The programs are compiled against the library that this build made, so that nothing
//! is built again; they name no other crate.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Returns true if this build made a library, as its dependency information says: each set of
    /// features has its own folder of the build script, which the code of the console names.
    fn is_of_this_build(library: &Path) -> bool {
        const FOLDER: &str = "# env-dep:OUT_DIR=";
        let name = library.file_stem().unwrap().to_string_lossy().replacen("lib", "", 1);
        let built = std::fs::read_to_string(library.with_file_name(format!("{name}.d"))).unwrap();
        match built.lines().find_map(|line| line.strip_prefix(FOLDER)) {
            Some(folder) => folder == env!("OUT_DIR"),
            None => !cfg!(feature = "ui"),
        }
    }

    /// Returns the library of this build: those with other features leave theirs in the same folder.
    fn library_of_this_build(deps: &Path) -> PathBuf {
        let files = std::fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
        let is_library = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("libgreenroom-") && name.ends_with(".rlib") && is_of_this_build(path)
        };
        let written_at = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
        files.filter(is_library).max_by_key(written_at).unwrap()
    }

    /// Returns what the compiler says of a program, without its line breaks.
    fn said_of(name: &str, program: &str) -> (bool, String) {
        // tests are beside the libraries that they were built with
        let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let library = library_of_this_build(&deps);
        let folder = tempfile::tempdir().unwrap();
        let file: PathBuf = folder.path().join(format!("{name}.rs"));
        let program = format!("use greenroom::prelude::*;\n{program}");
        std::fs::write(&file, program).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let ended = Command::new(rustc)
            .args([
                "--edition=2024",
                "--crate-type=lib",
                "--emit=metadata",
                "--color=never",
                "-Aunused",
            ])
            .arg("--out-dir")
            .arg(folder.path())
            .arg(format!("--extern=greenroom={}", library.display()))
            .arg(format!("-Ldependency={}", deps.display()))
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        (ended.status.success(), said.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    const RIGHT: &str = "
    async fn price(stock: Data<String>, n: u32, step: StepContext) -> Result<u32, StepError> { Ok(n) }
    fn steps() { Step::call(\"price\", price); }
";

    #[test]
    fn a_program_without_mistakes_is_compiled() {
        assert_eq!(said_of("right", RIGHT), (true, String::new()));
    }

    const NOT_TYPED: &str = "is not a function over types for this place";

    #[test]
    fn a_function_that_does_not_fit_is_told_its_form() {
        let arguments = "up to three `Data<T>` of types that are `Send + Sync`, then one input that \
                     implements `Deserialize` (`greenroom::typed::IgnoredAny` if it is not read), \
                     then, if wanted, the `";
        let result = "it is an `async fn` that returns `Result<T, StepError>` in a step and `Result<T, \
                  ToolError>` in a tool, where `T` implements `Serialize`";
        for (name, function) in [
            ("not_async", "fn price(n: u32) -> Result<u32, StepError> { Ok(n) }"),
            (
                "context_first",
                "async fn price(step: StepContext, n: u32) -> Result<u32, StepError> { Ok(n) }",
            ),
            (
                "no_data",
                "async fn price(stock: String, n: u32) -> Result<u32, StepError> { Ok(n) }",
            ),
            (
                "data_of_one_thread",
                "async fn price(stock: Data<std::cell::Cell<u32>>, n: u32) -> Result<u32, StepError> \
             { Ok(n) }",
            ),
            (
                "unread_input",
                "struct Order;\nasync fn price(_: Order) -> Result<u32, StepError> { Ok(1) }",
            ),
            (
                "unwritten_output",
                "struct Price;\nasync fn price(_: u32) -> Result<Price, StepError> { Ok(Price) }",
            ),
            ("failure_of_a_tool", "async fn price(n: u32) -> Result<u32, ToolError> { Ok(n) }"),
        ] {
            let program = format!("{function}\nfn steps() {{ Step::call(\"price\", price); }}");
            let (is_compiled, said) = said_of(name, &program);
            assert!(!is_compiled, "{name}");
            for message in [NOT_TYPED, arguments, result] {
                assert!(said.contains(message), "{name}: {message} is not said: {said}");
            }
        }
    }

    #[test]
    fn conditions_and_values_are_told_their_form() {
        let condition =
            "a condition is a text, or a closure `|cx: &Scope| -> Result<bool, StepError>`";
        let time = "a point in time is a text, or a closure `|cx: &Scope| -> Result<T, StepError>`";
        let value = "a value is a `serde_json::Value` whose strings are expressions, or a closure";
        for (name, code, messages) in [
            ("number", "Suspend::when(7);", ["`{integer}` is not a condition", condition]),
            (
                "number_of_a_closure",
                "Suspend::when(|cx: &Scope| Ok(cx.data::<u64>()?));",
                ["is not a condition", condition],
            ),
            ("time", "Step::sleep_until(\"a\", 7);", ["`{integer}` is not a point in time", time]),
            ("text", "Suspend::always().payload(\"input.a\");", ["`&str` is not a value", value]),
        ] {
            let (is_compiled, said) = said_of(name, &format!("fn steps() {{ {code} }}"));
            assert!(!is_compiled, "{name}");
            for message in messages {
                assert!(said.contains(message), "{name}: {message} is not said: {said}");
            }
        }
    }
}
