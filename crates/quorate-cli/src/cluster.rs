//! What the commands that talk to a cluster have in common: which one, and how to print answers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use quorate_api::ClaimId;
use quorate_client::{Client, Options, Tls, Token, Views};

use crate::credentials::{Credentials, Place};

/// Which cluster, and how to answer.
#[derive(clap::Args, Clone, Debug)]
pub struct Cluster {
    /// A node, as HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:/PATH (its socket on this
    /// machine); name several by repeating it or with commas, and one that answers is used. Without
    /// it: $QUORATE_SERVER, or the local dev node (127.0.0.1:7420).
    #[arg(long, value_name = "URL", value_delimiter = ',', global = true)]
    server: Vec<String>,
    #[command(flatten)]
    credentials: Credentials,
}

/// How to answer.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Json {
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

const VARIABLE: &str = "QUORATE_SERVER";
/// What the client calls itself.
const CLIENT: &str = "QUORATE_CLIENT";
/// Where the first node of `quorate dev` listens.
pub const LOCAL: &str = "127.0.0.1:7420";

impl Cluster {
    /// Whether a cluster was named, here or in the environment.
    pub fn is_named(&self) -> bool {
        !self.server.is_empty() || std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
    }

    /// The nodes that were named, here or in the environment, or the local dev node.
    pub fn servers(&self) -> Vec<String> {
        if !self.server.is_empty() {
            return self.server.clone();
        }
        let named = std::env::var(VARIABLE).unwrap_or_default();
        let named: Vec<String> =
            named.split(',').map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect();
        if named.is_empty() { vec![LOCAL.into()] } else { named }
    }

    /// A client of the cluster that says who asks.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let options = Options {
            name: who_asks(),
            token: self.token()?,
            tls: self.tls()?,
            ..Options::default()
        };
        Ok(Client::connect_with(self.servers(), options).await?)
    }

    /// The cluster as people see it, with the rights of whatever token or certificate is found.
    pub fn views(&self) -> anyhow::Result<Views> {
        Ok(Views::new(self.servers())?.with_tls(self.tls()?)?.with_token(self.token()?))
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        self.credentials.tls(&Place::HERE, &self.servers())
    }

    fn token(&self) -> anyhow::Result<Option<Token>> {
        self.credentials.token(&Place::HERE)
    }

    /// The files with certificates that would be used: whom to trust, and what to show.
    pub fn certificates(&self) -> Vec<std::path::PathBuf> {
        self.credentials.files(&Place::HERE)
    }

    /// The views of one of the servers.
    pub fn views_of(&self, server: &str) -> anyhow::Result<Views> {
        Cluster { server: vec![server.to_owned()], ..self.clone() }.views()
    }
}

/// Runs a command's future to its end, on this thread: a child process that asks to die with us
/// dies with the thread that started it.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    // Boxed, for one copy of the runtime's loop instead of one for every command.
    let work: Pin<Box<dyn Future<Output = anyhow::Result<T>> + '_>> = Box::pin(work);
    runtime.block_on(work)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whom others see waiting or holding: a user, a machine and a process, unless they said a name.
fn who_asks() -> String {
    if let Some(name) = variable(CLIENT) {
        return name;
    }
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let process = std::process::id();
    match user {
        Ok(user) => format!("{user}@{host} ({process})"),
        Err(_) => format!("{host} ({process})"),
    }
}

/// Prints a value as JSON, or as its text.
pub fn print(
    json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let mut answer = if json { serde_json::to_string_pretty(value)? } else { text() };
    if !answer.is_empty() && !answer.ends_with('\n') {
        answer.push('\n');
    }
    std::io::stdout().write_all(answer.as_bytes())?;
    Ok(())
}

/// Rows under a header, in columns that fit.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).chain([header[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A span that was measured, as people say it: two numbers are enough.
pub fn span(millis: Option<u64>) -> String {
    let Some(millis) = millis else { return "-".into() };
    let (seconds, minutes, hours) = (millis / 1_000, millis / 60_000, millis / 3_600_000);
    match (seconds, minutes, hours) {
        (0, ..) => format!("{millis} ms"),
        (1..10, ..) => format!("{seconds}.{} s", millis % 1_000 / 100),
        (_, 0, _) => format!("{seconds} s"),
        (_, _, 0) => format!("{minutes} min {} s", seconds % 60),
        (_, _, 1..24) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// The name of a claim, from the command line.
pub fn claim_id(text: &str) -> Result<ClaimId, String> {
    text.parse().map_err(|error: quorate_api::ClaimIdError| error.to_string())
}

/// A span of time, from the command line.
pub fn duration(text: &str) -> Result<Duration, String> {
    quorate_api::parse_span(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_as_people_say_them() {
        for (millis, told) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (9_293, "9.2 s"),
            (42_900, "42 s"),
            (90_500, "1 min 30 s"),
            (7_260_000, "2 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Some(millis)), told);
        }
        assert_eq!(span(None), "-");
    }
}
