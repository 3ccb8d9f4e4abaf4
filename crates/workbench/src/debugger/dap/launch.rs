//! The arguments of a launch request. One table defines these arguments. The adapter parses requests with this table.
//! The adapter also generates the JSON schema for editors from this table.

use reconverge_isa::source::closest;
use serde_json::{Map, Value, json};

/// The type of a launch argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A non-negative integer.
    Number,
    /// A non-negative integer, or a string such as `8x8`.
    Size,
    /// A list of strings, or one string.
    Texts,
}

impl ArgumentType {
    /// Returns the name of the type for messages and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            ArgumentType::Text => "a text",
            ArgumentType::Flag => "true or false",
            ArgumentType::Number => "a whole number",
            ArgumentType::Size => "a whole number or a text such as \"8x8\"",
            ArgumentType::Texts => "a list of texts",
        }
    }

    /// Returns the JSON schema of the type.
    fn schema(self) -> Value {
        match self {
            ArgumentType::Text => json!({ "type": "string" }),
            ArgumentType::Flag => json!({ "type": "boolean" }),
            ArgumentType::Number => json!({ "type": "integer", "minimum": 0 }),
            ArgumentType::Size => json!({ "type": ["integer", "string"] }),
            ArgumentType::Texts => json!({ "type": ["array", "string"], "items": { "type": "string" } }),
        }
    }

    /// Converts a JSON value to command-line arguments. Returns `None` if the JSON value does not have this type.
    fn words(self, value: &Value) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value| value.as_u64().map(|number| number.to_string());
        match self {
            ArgumentType::Text => text(value).map(|word| vec![word]),
            ArgumentType::Flag => value.as_bool().map(|flag| vec![flag.to_string()]),
            ArgumentType::Number => number(value).map(|word| vec![word]),
            ArgumentType::Size => number(value).or_else(|| text(value)).map(|word| vec![word]),
            ArgumentType::Texts => match value.as_array() {
                Some(list) => list.iter().map(text).collect(),
                None => text(value).map(|word| vec![word]),
            },
        }
    }
}

/// An argument of a launch request, one row of [`ARGUMENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchArgument {
    /// Name of the argument.
    pub name: &'static str,
    /// Type of the argument's value.
    pub kind: ArgumentType,
    /// The option of `run` with the same meaning as the argument, if such an option exists.
    pub option: Option<&'static str>,
    /// The description in editors and in the documentation.
    pub help: &'static str,
}

const fn row(
    name: &'static str,
    kind: ArgumentType,
    option: Option<&'static str>,
    help: &'static str,
) -> LaunchArgument {
    LaunchArgument { name, kind, option, help }
}

/// All arguments of a launch request.
#[rustfmt::skip]
pub const ARGUMENTS: [LaunchArgument; 18] = {
    use ArgumentType::{Flag, Number, Size, Text, Texts};
    [
        row("program",     Text,   None,               "The file: a source (.s), another program or a launch file"),
        row("machine",     Text,   Some("--isa"),      "The machine of the program, if the file does not state it: r500, r700 or tesla"),
        row("chip",        Text,   Some("--chip"),     "The chip, for example R580, RV770 or sm_13"),
        row("kernel",      Text,   Some("--kernel"),   "The program of this name, if the file has several"),
        row("lanes",       Number, Some("--lanes"),    "Number of lanes (not for kernels)"),
        row("grid",        Size,   Some("--grid"),     "Blocks of a kernel, 4 or \"4x2\""),
        row("block",       Size,   Some("--block"),    "Threads of a block, 64 or \"8x8\""),
        row("buf",         Texts,  Some("--buf"),      "Buffers in the order of the parameters: [\"a=in.npy\", \"out=u32[12]\"]"),
        row("arg",         Texts,  Some("--arg"),      "Other parameters in their order: [\"n=256\"]"),
        row("input",       Texts,  Some("--input"),    "Initial registers: [\"R0=1.0,2.0\"]"),
        row("const",       Texts,  Some("--const"),    "Constants: [\"3=1,2,3,4\"]"),
        row("engine",      Text,   Some("--engine"),   "The engine, as for `run`; the values do not depend on it"),
        row("mode",        Text,   Some("--mode"),     "strict: undefined behaviour traps; lenient: it has the recommended effect"),
        row("watchdog",    Number, Some("--watchdog"), "Number of instructions that a group may issue"),
        row("args",        Texts,  None,               "Further options of `run`, one word each: [\"--shared\", \"512\"]"),
        row("stopOnEntry", Flag,   None,               "Stop at the first instruction (default: true)"),
        row("stopAtEnd",   Flag,   None,               "Stay at the end, to read values and step back (default: false)"),
        row("noDebug",     Flag,   None,               "Run to the end without a stop (default: false)"),
    ]
};

/// The editor sends these attributes in the launch request, but the adapter does not use these attributes. Attributes
/// whose names begin with `__` are also for the editor. Source: Visual Studio Code, "Launch.json attributes".
const OF_EDITORS: [&str; 10] = [
    "type",
    "request",
    "name",
    "presentation",
    "preLaunchTask",
    "postDebugTask",
    "internalConsoleOptions",
    "debugServer",
    "serverReadyAction",
    "suppressMultipleSessionView",
];

/// A parsed launch request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Path of the program file, if the request states a path.
    pub program: Option<String>,
    /// The options of `run`, as command-line arguments.
    pub options: Vec<String>,
    /// Whether the launch stops at its first instruction.
    pub stop_on_entry: bool,
    /// Whether the session remains open after the launch has ended.
    pub stop_at_end: bool,
    /// Whether the launch runs to its end without a stop.
    pub no_debug: bool,
}

impl LaunchRequest {
    /// Parses the arguments of a launch request.
    ///
    /// # Errors
    /// Returns an error if an argument is unknown or has the wrong type. The message names the argument and the
    /// expected type.
    pub fn read(arguments: &Value) -> Result<LaunchRequest, String> {
        let mut request = LaunchRequest { stop_on_entry: true, ..LaunchRequest::default() };
        let none = Map::new();
        let given = match arguments {
            Value::Null => &none,
            Value::Object(given) => given,
            other => return Err(format!("launch arguments: expected an object, found {other}")),
        };
        if let Some(name) = given.keys().find(|name| !is_known(name)) {
            return Err(unknown(name));
        }
        // The loop appends the options in the order of the table. So the strings of the argument `args` come after the
        // options of all earlier arguments in the table.
        for row in &ARGUMENTS {
            let Some(value) = given.get(row.name).filter(|value| !value.is_null()) else { continue };
            let words = row.kind.words(value);
            let words = words.ok_or_else(|| {
                format!("launch argument `{}`: expected {}, found {value}", row.name, row.kind.name())
            })?;
            request.take(row, words);
        }
        Ok(request)
    }

    fn take(&mut self, row: &LaunchArgument, words: Vec<String>) {
        let is_set = words.first().is_some_and(|word| word == "true");
        match (row.option, row.name) {
            // The form `OPTION=VALUE` is also correct if the value begins with `-`.
            (Some(option), _) => self.options.extend(words.iter().map(|word| format!("{option}={word}"))),
            (None, "program") => self.program = words.into_iter().next(),
            (None, "stopOnEntry") => self.stop_on_entry = is_set,
            (None, "stopAtEnd") => self.stop_at_end = is_set,
            (None, "noDebug") => self.no_debug = is_set,
            (None, _) => self.options.extend(words),
        }
    }
}

fn is_known(name: &str) -> bool {
    ARGUMENTS.iter().any(|row| row.name == name) || OF_EDITORS.contains(&name) || name.starts_with("__")
}

/// Returns the message that a launch argument is unknown.
fn unknown(name: &str) -> String {
    let names = ARGUMENTS.map(|row| row.name);
    let more = match closest(name, names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("expected one of {}", names.join(", ")),
    };
    format!("unknown launch argument `{name}`, {more}")
}

/// Replaces the options of `run` in a message by the names of the corresponding launch arguments.
pub fn in_arguments(message: &str) -> String {
    let is_named = |option: &str| {
        let ends = |letter: char| !(letter.is_alphanumeric() || letter == '-');
        message.split(ends).any(|word| word == option)
    };
    let argument = |row: &LaunchArgument| {
        let option = row.option.filter(|option| is_named(option))?;
        Some(format!("{option} is `{}`", row.name))
    };
    let arguments: Vec<String> = ARGUMENTS.iter().filter_map(argument).collect();
    match arguments.is_empty() {
        true => message.to_owned(),
        false => format!("{}; in a launch request {}", message.trim_end(), arguments.join(", ")),
    }
}

/// Returns the JSON schema of launch requests, for `configurationAttributes.launch` of an extension's manifest.
pub fn schema() -> Value {
    let property = |row: &LaunchArgument| {
        let mut property = row.kind.schema();
        property["description"] = json!(row.help);
        (row.name.to_owned(), property)
    };
    // Users do not write `noDebug` in a launch configuration. The editor adds `noDebug` for the command "run without
    // debugging".
    let rows = ARGUMENTS.iter().filter(|row| row.name != "noDebug");
    json!({ "required": ["program"], "properties": rows.map(property).collect::<Map<String, Value>>() })
}
