//! The form of a page: a labelled control for each value, with what is wrong with it.

use std::fmt::Write as _;

use serde_json::Value;

use super::push_schema;
use crate::api::inbox::{
    Arguments, AskForm, DATA, DECISION, DECLINE, Mistake, REASON, ValueForm, choice_text,
    control_of,
};
use crate::api::query::{Pairs, value_of};
use crate::api::wire::form::{FieldView, SEVERAL};
use crate::web::html::{escape, with_links};

/// Smallest and largest number of lines of a text area.
const ROWS_MIN: usize = 2;
const ROWS_MAX: usize = 20;

/// A form, what was submitted with it, and what was wrong.
pub(super) struct Controls<'a> {
    pub(super) form: &'a AskForm<'a>,
    pub(super) given: &'a Pairs,
    pub(super) mistakes: &'a [Mistake],
    pub(super) can_decline: bool,
}

/// A control: its id, its name and its label.
struct Place<'a> {
    id: &'a str,
    control: &'a str,
    label: &'a str,
}

/// Attributes of a control: its id and name, and what it refers to.
struct Attributes {
    html: String,
    is_required: bool,
}

impl Controls<'_> {
    /// Adds the form. It has no address and so is sent to that of the page.
    pub(super) fn push_to(&self, html: &mut String) {
        html.push_str("<form method=\"post\">\n");
        for mistake in self.mistakes.iter().filter(|mistake| mistake.control.is_none()) {
            push_wrong(html, "wrong-whole", &mistake.text);
        }
        match self.form {
            AskForm::Decision(arguments) => self.push_decision(html, arguments.as_ref()),
            AskForm::Value(form) => {
                self.push_value(html, form, None);
                html.push_str(
                    "<div class=\"actions\">\n<button class=\"strong\">Send answer</button>\n",
                );
                if self.can_decline {
                    let _ = writeln!(
                        html,
                        "<button name=\"{DECLINE}\" value=\"true\" formnovalidate>Decline</button>"
                    );
                }
                html.push_str("</div>\n");
            }
        }
        html.push_str("</form>\n");
    }

    fn push_decision(&self, html: &mut String, arguments: Option<&Arguments<'_>>) {
        // the first button is that of the Enter key, which must not decide
        html.push_str("<button disabled hidden></button>\n");
        if let Some(Arguments { form, written }) = arguments {
            html.push_str(
                "<fieldset>\n<legend>Details</legend>\n\
                 <p class=\"hint\">You can change them before you approve.</p>\n",
            );
            self.push_value(html, form, Some(written));
            html.push_str("</fieldset>\n");
        }
        let place = Place { id: REASON, control: REASON, label: "Reason (optional)" };
        let reason = self.begin(html, &place, None, false);
        self.push_area(html, &reason, REASON, "");
        if let Some(mistake) = self.mistake_at(DECISION) {
            push_wrong(html, "wrong-decision", &mistake.text);
        }
        // what is refused need not be right
        let _ = write!(
            html,
            "<div class=\"actions\">\n\
             <button name=\"{DECISION}\" value=\"true\" class=\"strong\">Approve</button>\n\
             <button name=\"{DECISION}\" value=\"false\" formnovalidate>Refuse</button>\n</div>\n"
        );
    }

    /// Adds the controls of a value, with what is in them at first.
    fn push_value(&self, html: &mut String, form: &ValueForm<'_>, shown: Option<&Value>) {
        match form {
            ValueForm::Fields(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    let first = match shown {
                        Some(shown) => shown.get(field.name),
                        None => field.default,
                    };
                    let id = format!("c{index}");
                    let mut label = field.title.unwrap_or(field.name).to_owned();
                    if !field.required {
                        label.push_str(" (optional)");
                    }
                    let place = Place { id: &id, control: &control_of(field.name), label: &label };
                    self.push_field(html, &place, field, first);
                }
            }
            ValueForm::Plain(field) => {
                let place = Place { id: DATA, control: DATA, label: "Your answer" };
                self.push_field(html, &place, field, field.default);
            }
            ValueForm::Json(schema) => {
                let label = if shown.is_some() { "As JSON" } else { "Answer as JSON" };
                let place = Place { id: DATA, control: DATA, label };
                let mut attributes = self.begin(html, &place, None, false);
                attributes
                    .html
                    .push_str(" class=\"json\" spellcheck=\"false\" autocapitalize=\"off\"");
                let first = shown.map(|shown| format!("{shown:#}")).unwrap_or_default();
                self.push_area(html, &attributes, DATA, &first);
                if let Some(schema) = schema {
                    push_schema(html, schema);
                }
            }
        }
    }

    fn push_field(
        &self,
        html: &mut String,
        place: &Place<'_>,
        field: &FieldView<'_>,
        first: Option<&Value>,
    ) {
        let control = place.control;
        if field.kind == SEVERAL {
            self.push_boxes(html, place, field, first);
            return;
        }
        let attributes = self.begin(html, place, field.description, field.required);
        let default = first.map(choice_text).unwrap_or_default();
        if field.options.is_some() {
            self.push_choices(html, &attributes, control, &default, choices(field));
            return;
        }
        let kind = match (field.kind, field.format) {
            ("boolean", _) => {
                let choices = [("true", "Yes"), ("false", "No")];
                let choices = choices.map(|(value, text)| (value.to_owned(), text.to_owned()));
                self.push_choices(html, &attributes, control, &default, choices);
                return;
            }
            ("integer", _) => "type=\"number\" step=\"1\"",
            ("number", _) => "type=\"number\" step=\"any\"",
            (_, Some("date")) => "type=\"date\"",
            (_, Some("email")) => "type=\"email\"",
            (_, Some("uri")) => "type=\"url\"",
            (_, Some(_)) => "type=\"text\"",
            (_, None) => {
                self.push_area(html, &attributes, control, &default);
                return;
            }
        };
        let value = escape(self.value(control, &default));
        let _ = writeln!(html, "<input {kind} value=\"{value}\"{}>", attributes.html);
    }

    /// Adds a box to check for each value. Browsers cannot ask for one of several boxes, so that
    /// none is required.
    fn push_boxes(
        &self,
        html: &mut String,
        place: &Place<'_>,
        field: &FieldView<'_>,
        first: Option<&Value>,
    ) {
        let Place { id, control, label } = *place;
        let _ = writeln!(
            html,
            "<fieldset id=\"{id}\">\n<legend dir=\"auto\">{}</legend>",
            escape(label)
        );
        let told = self.push_told(html, place, field.description);
        let described = described_by(&told);
        let shown = first.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_checked = |value: &str| match self.given {
            [] => shown.iter().any(|it| choice_text(it) == value),
            given => given.iter().any(|(name, text)| name == control && text == value),
        };
        // a form that was sent with no box checked differs from one that was not sent
        html.push_str("<input type=\"hidden\" name=\"sent\" value=\"1\">\n");
        let name = escape(control);
        for (value, text) in choices(field) {
            let mark = if is_checked(&value) { " checked" } else { "" };
            let (value, text) = (escape(&value), escape(&text));
            let _ = writeln!(
                html,
                "<label class=\"box\" dir=\"auto\"><input type=\"checkbox\" name=\"{name}\" \
                 value=\"{value}\"{mark}{described}> {text}</label>"
            );
        }
        html.push_str("</fieldset>\n");
    }

    /// Adds the description of a control and what is wrong with it; returns the ids of both.
    fn push_told(&self, html: &mut String, place: &Place<'_>, hint: Option<&str>) -> Vec<String> {
        let Place { id, control, .. } = *place;
        let mut told = Vec::new();
        if let Some(hint) = hint {
            let hint = with_links(hint);
            let _ = writeln!(html, "<p class=\"hint\" id=\"{id}-hint\" dir=\"auto\">{hint}</p>");
            told.push(format!("{id}-hint"));
        }
        if let Some(mistake) = self.mistake_at(control) {
            push_wrong(html, &format!("{id}-wrong"), &mistake.text);
            told.push(format!("{id}-wrong"));
        }
        told
    }

    /// Adds the label of a control, its description and what is wrong with it, which the control
    /// then refers to.
    fn begin(
        &self,
        html: &mut String,
        place: &Place<'_>,
        hint: Option<&str>,
        is_required: bool,
    ) -> Attributes {
        let Place { id, control, label } = *place;
        let _ = writeln!(html, "<label for=\"{id}\" dir=\"auto\">{}</label>", escape(label));
        let told = self.push_told(html, place, hint);
        let mistake = self.mistake_at(control);
        let mut attributes = format!(" id=\"{id}\" name=\"{}\" dir=\"auto\"", escape(control));
        if is_required {
            attributes.push_str(" required");
        }
        if mistake.is_some() {
            attributes.push_str(" aria-invalid=\"true\"");
            if self.mistakes.first() == mistake {
                attributes.push_str(" autofocus");
            }
        }
        attributes.push_str(&described_by(&told));
        Attributes { html: attributes, is_required }
    }

    fn push_area(&self, html: &mut String, attributes: &Attributes, control: &str, default: &str) {
        let value = escape(self.value(control, default));
        let rows = (value.lines().count() + 1).clamp(ROWS_MIN, ROWS_MAX);
        // a line end right behind the tag is not part of the text
        let _ = writeln!(html, "<textarea rows=\"{rows}\"{}>\n{value}</textarea>", attributes.html);
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
        let none = if attributes.is_required { "Choose…" } else { "–" };
        let _ = writeln!(html, "<select{}>\n<option value=\"\">{none}</option>", attributes.html);
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

/// Returns the values to choose from with the texts that are shown for them.
fn choices(field: &FieldView<'_>) -> Vec<(String, String)> {
    let options = field.options.as_deref().unwrap_or_default().iter().map(choice_text);
    match &field.option_titles {
        Some(titles) => options.zip(titles.iter().map(|&title| title.to_owned())).collect(),
        None => options.map(|text| (text.clone(), text)).collect(),
    }
}

fn described_by(ids: &[String]) -> String {
    match ids {
        [] => String::new(),
        ids => format!(" aria-describedby=\"{}\"", ids.join(" ")),
    }
}

fn push_wrong(html: &mut String, id: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(html, "<p class=\"wrong\" id=\"{id}\" role=\"alert\" dir=\"auto\">{text}</p>");
}
