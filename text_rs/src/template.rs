//! Chat templates in the environment that transformers gives them.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::python::{strftime, JsonStyle};

/// Steps of the template machine: far more than any real chat needs.
const FUEL: u64 = 4_000_000;
/// Real templates have some ten thousand bytes.
const MAX_SOURCE: usize = 256 << 10;
/// Long expressions and nested values recurse: the two limits above bound how deep, and this is
/// room for it. Only what is used takes memory.
const STACK: usize = 1 << 30;

/// Runs `body` on a thread with a large stack.
fn with_stack<T: Send>(body: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, move || guard_rs::caught(body).unwrap_or_else(Err))
            .map_err(|error| format!("no thread for the template: {error}"))?
            .join()
            .unwrap_or_else(|_| Err("the template failed".to_string()))
    })
}

pub struct Template {
    environment: Environment<'static>,
}

impl Template {
    pub fn new(source: &str) -> Result<Self, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!("the template has {} bytes", source.len()));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| describe(&error))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("tojson", tojson);
        environment.add_test("sequence", is_sequence);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        with_stack(move || {
            environment
                .add_template_owned("chat", without_generation_tags(source))
                .map_err(|error| describe(&error))?;
            Ok(Self { environment })
        })
    }

    pub fn render(&self, variables: &[u8], now: i64) -> Result<String, String> {
        let variables: serde_json::Value =
            serde_json::from_slice(variables).map_err(|error| format!("variables: {error}"))?;
        let mut environment = self.environment.clone();
        let now = if now >= 0 {
            now
        } else {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs() as i64)
        };
        environment.add_function("strftime_now", move |format: String| {
            strftime(&format, now).map_err(|error| Error::new(ErrorKind::InvalidOperation, error))
        });
        with_stack(move || {
            let template = environment
                .get_template("chat")
                .map_err(|error| describe(&error))?;
            template
                .render(Value::from(Serde(variables)))
                .map_err(|error| describe(&error))
        })
    }
}

/// One line: what the template raised, or what went wrong in which line.
fn describe(error: &Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_string);
    let text = match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Jinja calls everything with a length and an index a sequence.
fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::String | ValueKind::Map
    )
}

/// json.dumps as transformers calls it: non-ASCII text stays, nothing is escaped for HTML.
fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = options.get("indent")?;
    let indent = match indent {
        Some(value) if value.kind() == ValueKind::Number => {
            Some(" ".repeat(value.as_usize().unwrap_or(0).min(64)))
        }
        Some(value) if value.kind() == ValueKind::String => Some(value.to_string()),
        _ => None,
    };
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (item_separator, key_separator) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ if indent.is_some() => (",".to_string(), ": ".to_string()),
        _ => (", ".to_string(), ": ".to_string()),
    };
    let style = JsonStyle {
        ensure_ascii: options
            .get::<Option<bool>>("ensure_ascii")?
            .unwrap_or(false),
        indent,
        item_separator,
        key_separator,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    Ok(Value::from(style.write(value)?))
}

/// `{% generation %}` only marks the assistant's tokens for training: a block that is always taken
/// renders the same and keeps the white-space control.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let inner = &tag[2..end];
        let word = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match word {
            "generation" => out.push_str(&format!("{{%{}%}}", inner.replace(word, "if true"))),
            "endgeneration" => out.push_str(&format!("{{%{}%}}", inner.replace(word, "endif"))),
            _ => out.push_str(&tag[..end + 2]),
        }
        rest = &tag[end + 2..];
    }
    out.push_str(rest);
    out
}
