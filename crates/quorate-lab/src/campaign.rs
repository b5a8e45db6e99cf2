//! One piece of work done in parts, by any number of processes on any machines: each does every
//! N-th item and writes what came of it, line by line; what is written can be resumed, and merged
//! to what an undivided run would have said.
//!
//! A line is a checksum, a space and JSON. The first says what is done: version, command,
//! arguments, how many items; parts that do not agree in it are not of one campaign. Nothing in it
//! tells a machine or a time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::experiment::crew::{self, Progress};

/// How a command is divided.
#[derive(clap::Args, Clone, Default, Debug)]
pub(crate) struct Division {
    /// Do every N-th item from the I-th on, and keep what came of it with --out. auto takes I and N
    /// from Slurm, LSF, SGE or a Kubernetes Job that also sets SHARDS
    #[arg(long, value_name = "I/N|auto", value_parser = parse_shard, requires = "out")]
    shard: Option<Shard>,
    /// Go on with what an interrupted run left in --out
    #[arg(long, requires = "out")]
    resume: bool,
    /// What all parts gave; then nothing is run.
    #[arg(skip)]
    merged: Option<Arc<Gathered>>,
}

/// All parts of a campaign.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// What it was asked for.
    pub(crate) arguments: Vec<String>,
    input: Value,
    results: BTreeMap<u64, Value>,
}

/// A part, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shard {
    number: u64,
    of: u64,
}

fn parse_shard(text: &str) -> Result<Shard, String> {
    if text == "auto" {
        return from_environment(&|name| std::env::var(name).ok());
    }
    let wrong = || format!("'{text}' is no part: write 3/8, or auto");
    let (number, of) = text.split_once('/').ok_or_else(wrong)?;
    let (number, of) = (number.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
    Shard { number, of }.checked()
}

impl Shard {
    fn checked(self) -> Result<Shard, String> {
        let Shard { number, of } = self;
        match (1..=of).contains(&number) && of <= 100_000 {
            true => Ok(self),
            false => Err(format!("{number}/{of} is no part: the first of 8 is 1/8, the last 8/8")),
        }
    }
}

/// Which part this is, by what schedulers set.
fn from_environment(get: &dyn Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let number = |name: &str| -> Result<Option<u64>, String> {
        let Some(text) = get(name) else { return Ok(None) };
        // SGE says "undefined" outside of arrays.
        if text == "undefined" {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| format!("{name}={text} is no number"))
    };
    let needed = |name: &str| number(name)?.ok_or_else(|| format!("{name} is not set"));
    if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
        let first = needed("SLURM_ARRAY_TASK_MIN")?;
        let number =
            task.checked_sub(first).ok_or("SLURM_ARRAY_TASK_MIN is larger than the task")?;
        return Shard { number: number + 1, of: needed("SLURM_ARRAY_TASK_COUNT")? }.checked();
    }
    if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        let of = number("SHARDS")?.ok_or(
            "Kubernetes does not say how many completions there are: set SHARDS in the Job, too",
        )?;
        return Shard { number: index + 1, of }.checked();
    }
    // An LSF task outside of an array has index 0.
    if let Some(index) = number("LSB_JOBINDEX")?.filter(|index| *index > 0) {
        return Shard { number: index, of: needed("LSB_JOBINDEX_END")? }.checked();
    }
    if let Some(task) = number("SGE_TASK_ID")? {
        return Shard { number: task, of: needed("SGE_TASK_LAST")? }.checked();
    }
    Err("auto: none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, LSB_JOBINDEX and SGE_TASK_ID is \
         set, so this is no task of an array: write --shard 1/4"
        .into())
}

/// What became of a piece of work.
pub(crate) enum Performed<T> {
    /// All of it is there, in order.
    All(Vec<T>),
    /// A part is, and is written down: so many items.
    Part(usize),
    /// It was told to stop; what is done is written down.
    Interrupted,
}

/// Told to stop, exit code 75 (`EX_TEMPFAIL`): run it again with --resume.
pub(crate) const INTERRUPTED: u8 = 75;

/// What tells one campaign from another, and how results are written down.
pub(crate) struct Campaign<'a, T> {
    /// The words of the command, such as `sim seeds`.
    pub(crate) command: &'a str,
    /// The folder for parts.
    pub(crate) out: Option<&'a Path>,
    /// What the work depends on beside the arguments, such as the contents of a file.
    pub(crate) input: Value,
    pub(crate) encode: &'a (dyn Fn(&T) -> Value + Sync),
    pub(crate) decode: &'a dyn Fn(&Value) -> anyhow::Result<T>,
}

impl Division {
    /// Whether anything is written down.
    pub(crate) fn is_divided(&self) -> bool {
        self.shard.is_some() || self.resume
    }

    /// Whether results come from parts that were merged.
    pub(crate) fn is_merged(&self) -> bool {
        self.merged.is_some()
    }

    /// With what all parts gave.
    pub(crate) fn merged(gathered: Gathered) -> Division {
        Division { merged: Some(Arc::new(gathered)), ..Division::default() }
    }

    /// Does all jobs, or those of this part.
    pub(crate) fn perform<J: Sync, T: Send>(
        &self,
        campaign: &Campaign<'_, T>,
        jobs: &[J],
        progress: &Progress<'_>,
        work: impl Fn(&J) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Performed<T>> {
        if let Some(gathered) = &self.merged {
            ensure!(
                gathered.input == campaign.input,
                "the file that the parts were made from has changed since: they say {}",
                gathered.input
            );
            let item = |number: u64| {
                let value = gathered.results.get(&number);
                let value = value.with_context(|| format!("item {number} is missing"))?;
                (campaign.decode)(value).with_context(|| format!("item {number}"))
            };
            let all = (0..jobs.len() as u64).map(item).collect::<anyhow::Result<_>>()?;
            return Ok(Performed::All(all));
        }
        let Some(folder) = campaign.out.filter(|_| self.is_divided()) else {
            return Ok(Performed::All(crew::all(jobs, progress, work)?));
        };
        let shard = self.shard.unwrap_or(Shard { number: 1, of: 1 });
        let header = header(campaign.command, &campaign.input, jobs.len(), shard.of);
        let part = Part::open(folder, shard, &header, self.resume)?;
        let mine = (shard.number - 1..jobs.len() as u64).step_by(shard.of as usize);
        let left: Vec<u64> = mine.clone().filter(|item| !part.known.contains_key(item)).collect();
        let stop = stopped();
        let done = crew::all(&left, progress, |item| {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let result = work(&jobs[*item as usize])?;
            part.add(*item, (campaign.encode)(&result))?;
            Ok(true)
        })?;
        match done.into_iter().all(|done| done) {
            true => Ok(Performed::Part(mine.count())),
            false => Ok(Performed::Interrupted),
        }
    }
}

/// Becomes true with SIGTERM or an interrupt: what is being done is brought to an end.
fn stopped() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            heard.store(true, Ordering::Relaxed);
        });
    });
    stop
}

/// The arguments of this process without those that say which part it is.
fn arguments() -> Vec<String> {
    let mut all = std::env::args().skip(1);
    let mut kept = Vec::new();
    while let Some(word) = all.next() {
        match word.as_str() {
            "--resume" => {}
            "--shard" | "--out" | "--threads" => _ = all.next(),
            _ if ["--shard=", "--out=", "--threads="].iter().any(|it| word.starts_with(it)) => {}
            _ => kept.push(word),
        }
    }
    kept
}

fn header(command: &str, input: &Value, items: usize, parts: u64) -> Value {
    json!({
        "campaign": command,
        "version": env!("CARGO_PKG_VERSION"),
        "arguments": arguments(),
        "input": input,
        "items": items,
        "parts": parts,
    })
}

/// FNV-1a: enough to find a line that was torn or touched.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn line(value: &Value) -> String {
    let text = value.to_string();
    format!("{:016x} {text}\n", checksum(&text))
}

fn read_line(line: &str) -> Option<Value> {
    let (sum, text) = line.split_once(' ')?;
    (u64::from_str_radix(sum, 16).ok()? == checksum(text)).then_some(())?;
    serde_json::from_str(text).ok()
}

struct Part {
    path: PathBuf,
    file: Mutex<File>,
    known: BTreeMap<u64, Value>,
}

/// A header, the results after it, and how many bytes of them are whole lines.
type Read = (Value, BTreeMap<u64, Value>, u64);

fn read(path: &Path) -> anyhow::Result<Read> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let mut whole = 0u64;
    let mut values = Vec::new();
    for piece in text.split_inclusive('\n') {
        // The last line of a process that was killed may be torn; any other must be whole.
        let value = piece.strip_suffix('\n').and_then(read_line);
        let is_last = whole + piece.len() as u64 == text.len() as u64;
        match value {
            Some(value) => values.push(value),
            None if is_last => break,
            None => bail!(
                "{shown}, line {}: its checksum is wrong, so somebody changed it; run this part \
                 again in a new folder",
                values.len() + 1
            ),
        }
        whole += piece.len() as u64;
    }
    let mut values = values.into_iter();
    let header = values.next().with_context(|| format!("{shown} has no header"))?;
    let mut known = BTreeMap::new();
    for mut value in values {
        let item =
            value["item"].as_u64().with_context(|| format!("{shown}: a line without item"))?;
        known.insert(item, value["result"].take());
    }
    Ok((header, known, whole))
}

impl Part {
    fn open(folder: &Path, shard: Shard, header: &Value, resume: bool) -> anyhow::Result<Part> {
        let Shard { number, of } = shard;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let path = folder.join(format!("part-{number:03}-of-{of:03}.jsonl"));
        let shown = path.display().to_string();
        let exists = path.exists();
        ensure!(
            !exists || resume,
            "{shown} is there: nothing was run. Go on with it by --resume, or choose another folder"
        );
        let (mut known, mut whole) = (BTreeMap::new(), 0);
        if exists && fs::metadata(&path).is_ok_and(|it| it.len() > 0) {
            let (theirs, results, bytes) = read(&path)?;
            ensure!(
                theirs == *header,
                "{shown} is of another campaign ({theirs}): nothing was run, choose another folder"
            );
            (known, whole) = (results, bytes);
        }
        let failed = || format!("cannot write {shown}");
        let file = OpenOptions::new().create(true).append(true).open(&path).with_context(failed)?;
        if exists {
            file.set_len(whole).with_context(failed)?;
        }
        let part = Part { path: path.clone(), file: Mutex::new(file), known };
        if whole == 0 {
            part.write(&line(header))?;
        }
        Ok(part)
    }

    fn add(&self, item: u64, result: Value) -> anyhow::Result<()> {
        self.write(&line(&json!({ "item": item, "result": result })))
    }

    /// One line at once, so that a process that is killed tears at most its last.
    fn write(&self, line: &str) -> anyhow::Result<()> {
        let mut file = self.file.lock().expect("no thread panics with it");
        let written = file.write_all(line.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Reads all parts of a folder.
///
/// # Errors
/// A part or an item is missing, or they are not of one campaign.
pub(crate) fn gather(folder: &Path) -> anyhow::Result<Gathered> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {shown}"))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {shown}"))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.starts_with("part-") && name.ends_with(".jsonl")) {
            paths.push(path);
        }
    }
    paths.sort();
    let first = paths.first().with_context(|| format!("{shown} has no parts of a campaign"))?;
    let header = read(first)?.0;
    let mut all = BTreeMap::new();
    for path in &paths {
        let (theirs, known, _) = read(path)?;
        ensure!(
            theirs == header,
            "{} and {} are of different campaigns: {header}, {theirs}",
            first.display(),
            path.display()
        );
        all.extend(known);
    }
    ensure!(
        header["version"] == env!("CARGO_PKG_VERSION"),
        "the parts are of version {}, and this is {}: merge with the version that made them",
        header["version"],
        env!("CARGO_PKG_VERSION")
    );
    let (items, parts) = (header["items"].as_u64(), header["parts"].as_u64());
    let (items, parts) = items.zip(parts).context("a header without items and parts")?;
    let missing: Vec<u64> = (0..items).filter(|item| !all.contains_key(item)).collect();
    if let Some(first) = missing.first() {
        let of: std::collections::BTreeSet<u64> = missing.iter().map(|it| it % parts + 1).collect();
        let of: Vec<String> =
            of.into_iter().take(20).map(|part| format!("{part}/{parts}")).collect();
        bail!(
            "{} of {items} items are missing, the first is {first}: run these parts again, with \
             --resume: {}",
            missing.len(),
            of.join(", ")
        );
    }
    let arguments = header["arguments"].as_array().context("a header without arguments")?;
    let words = arguments.iter().filter_map(|word| word.as_str().map(str::to_owned));
    Ok(Gathered { arguments: words.collect(), input: header["input"].clone(), results: all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_say_which_part_it_is() {
        let of = |set: &[(&str, &str)]| {
            from_environment(&|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let part = |number, of| Ok(Shard { number, of });
        let slurm = [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "3")];
        assert_eq!(of(&[slurm[0], slurm[1], ("SLURM_ARRAY_TASK_COUNT", "4")]), part(3, 4));
        assert_eq!(of(&[("JOB_COMPLETION_INDEX", "0"), ("SHARDS", "8")]), part(1, 8));
        assert!(of(&[("JOB_COMPLETION_INDEX", "0")]).is_err_and(|it| it.contains("SHARDS")));
        assert_eq!(of(&[("LSB_JOBINDEX", "2"), ("LSB_JOBINDEX_END", "9")]), part(2, 9));
        assert_eq!(of(&[("SGE_TASK_ID", "4"), ("SGE_TASK_LAST", "4")]), part(4, 4));
        assert!(of(&[("SGE_TASK_ID", "undefined")]).is_err());
        assert!(of(&[]).is_err_and(|it| it.contains("no task of an array")));
        assert!(parse_shard("0/4").is_err() && parse_shard("5/4").is_err());
        assert_eq!(parse_shard("4/4"), part(4, 4));
    }

    #[test]
    fn a_torn_line_is_done_again_and_a_changed_one_is_refused() {
        let whole = line(&json!({"items": 2})) + &line(&json!({"item": 1, "result": 7}));
        let folder = std::env::temp_dir().join(format!("quorate-part-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("part");
        fs::write(&path, format!("{whole}0123 {{\"ite")).expect("written");
        let (_, known, bytes) = read(&path).expect("its last line is torn");
        assert_eq!((known.len(), bytes), (1, whole.len() as u64));
        fs::write(&path, whole.replace("\"items\":2", "\"items\":3")).expect("written");
        let error = read(&path).expect_err("its header was changed");
        assert!(error.to_string().contains("checksum"), "{error}");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
