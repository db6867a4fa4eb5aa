//! The form of a page: a labelled control for each value, with what is wrong with it.

use std::fmt::Write as _;

use crate::api::inbox::{AskForm, DATA, DECISION, Mistake, REASON, choice_text, control_of};
use crate::api::query::{Pairs, value_of};
use crate::api::wire::form::FieldView;
use crate::web::html::escape;

/// A form, what was submitted with it, and what was wrong.
pub(super) struct Controls<'a> {
    pub(super) form: &'a AskForm<'a>,
    pub(super) given: &'a Pairs,
    pub(super) mistakes: &'a [Mistake],
}

/// Attributes of a control: its id and name, and what it refers to.
struct Attributes(String);

impl Controls<'_> {
    /// Adds the form. It has no address and so is sent to that of the page.
    pub(super) fn push_to(&self, html: &mut String) {
        html.push_str("<form method=\"post\">\n");
        for mistake in self.mistakes.iter().filter(|mistake| mistake.control.is_none()) {
            push_wrong(html, "wrong-whole", &mistake.text);
        }
        match self.form {
            AskForm::Decision => {
                let attributes = self.begin(html, 0, REASON, "Reason (optional)", None, false);
                self.push_area(html, &attributes, REASON, "");
                if let Some(mistake) = self.mistake_at(DECISION) {
                    push_wrong(html, "wrong-decision", &mistake.text);
                }
                let button = |value, class, label| {
                    format!(
                        "<button name=\"{DECISION}\" value=\"{value}\"{class}>{label}</button>\n"
                    )
                };
                let approve = button("true", " class=\"strong\"", "Approve");
                let refuse = button("false", "", "Refuse");
                let _ = write!(html, "<div class=\"actions\">\n{approve}{refuse}</div>\n");
            }
            AskForm::Fields(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    self.push_field(html, index, field);
                }
                push_send(html);
            }
            AskForm::Json => {
                let attributes = self.begin(html, 0, DATA, "Answer as JSON", None, false);
                self.push_area(html, &attributes, DATA, "");
                push_send(html);
            }
        }
        html.push_str("</form>\n");
    }

    fn push_field(&self, html: &mut String, index: usize, field: &FieldView<'_>) {
        let control = control_of(field.name);
        let mut label = field.title.unwrap_or(field.name).to_owned();
        if !field.required {
            label.push_str(" (optional)");
        }
        let attributes =
            self.begin(html, index, &control, &label, field.description, field.required);
        let default = field.default.map(choice_text).unwrap_or_default();
        if let Some(options) = field.options {
            let choices = options.iter().map(choice_text).map(|text| (text.clone(), text));
            self.push_choices(html, &attributes, &control, &default, choices);
            return;
        }
        let kind = match (field.kind, field.format) {
            ("boolean", _) => {
                let choices = [("true", "Yes"), ("false", "No")];
                let choices = choices.map(|(value, text)| (value.to_owned(), text.to_owned()));
                self.push_choices(html, &attributes, &control, &default, choices);
                return;
            }
            ("integer", _) => "type=\"number\" step=\"1\"",
            ("number", _) => "type=\"number\" step=\"any\"",
            (_, Some("date")) => "type=\"date\"",
            (_, Some("email")) => "type=\"email\"",
            (_, Some("uri")) => "type=\"url\"",
            (_, Some(_)) => "type=\"text\"",
            (_, None) => {
                self.push_area(html, &attributes, &control, &default);
                return;
            }
        };
        let value = escape(self.value(&control, &default));
        let _ = writeln!(html, "<input {kind} value=\"{value}\"{}>", attributes.0);
    }

    /// Adds the label of a control, its description and what is wrong with it, which the control
    /// then refers to.
    fn begin(
        &self,
        html: &mut String,
        index: usize,
        control: &str,
        label: &str,
        hint: Option<&str>,
        is_required: bool,
    ) -> Attributes {
        let id = format!("c{index}");
        let _ = writeln!(html, "<label for=\"{id}\" dir=\"auto\">{}</label>", escape(label));
        let mut told = Vec::new();
        if let Some(hint) = hint {
            let _ = writeln!(html, "<p class=\"hint\" id=\"{id}-hint\">{}</p>", escape(hint));
            told.push(format!("{id}-hint"));
        }
        let mistake = self.mistake_at(control);
        if let Some(mistake) = mistake {
            push_wrong(html, &format!("{id}-wrong"), &mistake.text);
            told.push(format!("{id}-wrong"));
        }
        let mut attributes = format!(" id=\"{id}\" name=\"{}\"", escape(control));
        if is_required {
            attributes.push_str(" required");
        }
        if mistake.is_some() {
            attributes.push_str(" aria-invalid=\"true\"");
        }
        if !told.is_empty() {
            let _ = write!(attributes, " aria-describedby=\"{}\"", told.join(" "));
        }
        Attributes(attributes)
    }

    fn push_area(&self, html: &mut String, attributes: &Attributes, control: &str, default: &str) {
        let value = escape(self.value(control, default));
        // a line end right behind the tag is not part of the text
        let _ = writeln!(html, "<textarea rows=\"3\"{}>\n{value}</textarea>", attributes.0);
    }

    /// Adds values to choose from, with the texts that are shown for them.
    fn push_choices(
        &self,
        html: &mut String,
        attributes: &Attributes,
        control: &str,
        default: &str,
        choices: impl IntoIterator<Item = (String, String)>,
    ) {
        let chosen = self.value(control, default);
        let _ = writeln!(html, "<select{}>\n<option value=\"\"></option>", attributes.0);
        for (value, text) in choices {
            let mark = if value == chosen { " selected" } else { "" };
            let (value, text) = (escape(&value), escape(&text));
            let _ = writeln!(html, "<option value=\"{value}\"{mark}>{text}</option>");
        }
        html.push_str("</select>\n");
    }

    /// Returns what was submitted for a control, or its default in a form that was not.
    fn value<'s>(&'s self, control: &str, default: &'s str) -> &'s str {
        if self.given.is_empty() { default } else { value_of(self.given, control).unwrap_or("") }
    }

    fn mistake_at(&self, control: &str) -> Option<&Mistake> {
        self.mistakes.iter().find(|mistake| mistake.control.as_deref() == Some(control))
    }
}

fn push_send(html: &mut String) {
    html.push_str(
        "<div class=\"actions\">\n<button class=\"strong\">Send answer</button>\n</div>\n",
    );
}

fn push_wrong(html: &mut String, id: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(html, "<p class=\"wrong\" id=\"{id}\" role=\"alert\" dir=\"auto\">{text}</p>");
}
