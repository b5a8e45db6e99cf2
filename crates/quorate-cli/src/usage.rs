//! A command line that was not understood: one clear line on standard error.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};

/// Help goes to standard output in full; a mistake gets one line, and exits with `misunderstood`.
/// Whoever says nothing at all is shown what could be said.
pub(crate) fn explain(command: &clap::Command, misunderstood: u8, error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing better can be done if even help cannot be printed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().len() == 1 {
        eprintln!("{}", command.clone().render_help());
        return ExitCode::from(misunderstood);
    }
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            format!("a command is missing: choose {}", choices(command))
        }
        _ => mistake(error),
    };
    eprintln!("{}: {what} (see --help)", command.get_name());
    ExitCode::from(misunderstood)
}

/// The commands that could have come next, as in "this, that or other".
fn choices(command: &clap::Command) -> String {
    let mut command = command;
    for word in std::env::args().skip(1) {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    let shown = command.get_subcommands().filter(|choice| !choice.is_hide_set());
    let mut names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last.into() } else { format!("{} or {last}", names.join(", ")) }
}

/// What is wrong, and what may have been meant.
fn mistake(error: &clap::Error) -> String {
    let of = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    let mut line = match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("a value is required for '{argument}' but none was supplied")
        }
        ErrorKind::InvalidValue => format!("invalid value '{value}' for '{argument}'"),
        ErrorKind::ValueValidation => {
            let why = error.source().map(reason).unwrap_or_default();
            format!("invalid value '{value}' for '{argument}': {why}")
        }
        ErrorKind::UnknownArgument if is_negative(&argument) => {
            format!("'{argument}…' is negative, and nothing here can be")
        }
        ErrorKind::UnknownArgument => format!("unexpected argument '{argument}' found"),
        ErrorKind::InvalidSubcommand => {
            format!("unrecognized subcommand '{}'", of(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("the following required arguments were not provided: {argument}")
        }
        ErrorKind::ArgumentConflict => match of(ContextKind::PriorArg) {
            prior if prior.is_empty() || prior == argument => {
                format!("the argument '{argument}' cannot be used multiple times")
            }
            prior => format!("the argument '{argument}' cannot be used with '{prior}'"),
        },
        other => format!("{other}: '{argument}'"),
    };
    if error.kind() == ErrorKind::InvalidValue {
        line += &bracketed("possible values", &of(ContextKind::ValidValue));
    }
    for kind in
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
    {
        line += &bracketed("did you mean", &of(kind));
    }
    // What is wrong with a value may be said in several lines.
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether somebody wrote a negative number or span, and no flag.
fn is_negative(argument: &str) -> bool {
    argument.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What is wrong with a value, for people who know no Rust.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "it is too large".into(),
        Some(_) => "write a whole number".into(),
        None if error.is::<ParseFloatError>() => "write a number".into(),
        None => error.to_string().replace("..=", " to "),
    }
}

fn bracketed(what: &str, list: &str) -> String {
    if list.is_empty() { String::new() } else { format!(" [{what}: {list}]") }
}
