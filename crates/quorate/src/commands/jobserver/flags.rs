//! How builds are told of their tokens: by words in `MAKEFLAGS`, unless their own `-j` says that
//! they should not look there.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::pipes::Style;

/// The programs that have jobs of their own as soon as they are given `-j`.
fn is_make(name: &str) -> bool {
    matches!(name, "make" | "gmake")
}

fn is_ninja(name: &str) -> bool {
    matches!(name, "ninja" | "ninja-build" | "samu")
}

fn name(command: &[OsString]) -> &str {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.and_then(OsStr::to_str).unwrap_or_default()
}

/// What suits this program: ninja knows pipes with names only, and make before 4.4 those without.
pub(super) fn style(command: &[OsString]) -> Style {
    if is_ninja(name(command)) { Style::Fifo } else { Style::Pipe }
}

/// Takes `-j` away from a make or ninja, which would not look for our tokens otherwise, and returns
/// how many jobs it allows: `Some(None)` is any number.
pub(super) fn without_jobs(command: &mut Vec<OsString>) -> Option<Option<u32>> {
    let program = name(command);
    let (make, ninja) = (is_make(program), is_ninja(program));
    if !make && !ninja {
        return None;
    }
    let mut found = None;
    let mut kept = Vec::new();
    let mut words = std::mem::take(command).into_iter().peekable();
    kept.extend(words.next());
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let number = match text {
            "--" => {
                kept.push(word);
                break;
            }
            "-j" => "",
            "--jobs" if make => "",
            _ => match text.strip_prefix("--jobs=").filter(|_| make) {
                Some(number) => number,
                None => match text.strip_prefix("-j") {
                    Some(number) => number,
                    None => {
                        kept.push(word);
                        continue;
                    }
                },
            },
        };
        let mut jobs = number.parse().ok();
        // make takes the next word only if it is a number; ninja always does.
        if number.is_empty() {
            let next = words.peek().and_then(|next| next.to_str()?.parse().ok());
            if next.is_some() || (ninja && words.peek().is_some()) {
                words.next();
            }
            jobs = next;
        }
        found = Some(jobs.filter(|jobs| *jobs > 0));
    }
    kept.extend(words);
    *command = kept;
    found
}

/// `MAKEFLAGS` as it was, except for jobs and where their tokens are.
pub(super) fn makeflags(before: &str, most: u32, address: &str) -> String {
    let ours = format!("-j{most} --jobserver-auth={address}");
    // Behind this are variables, in which blanks may be escaped.
    let (flags, variables) = match before.split_once(" -- ") {
        Some((flags, variables)) => (flags, Some(variables)),
        None => (before, None),
    };
    let foreign = |word: &&str| {
        let jobs = ["-j", "--jobs", "--jobserver-auth=", "--jobserver-fds=", "--jobserver-style="];
        !jobs.iter().any(|jobs| word.starts_with(jobs))
    };
    let kept: Vec<&str> =
        flags.split(' ').filter(|word| !word.is_empty()).filter(foreign).collect();
    // The first word may be letters without a dash; if there are none, there is a blank for them.
    let first = kept.first().filter(|word| !word.starts_with('-'));
    let rest = kept.iter().skip(usize::from(first.is_some()));
    let mut words = vec![first.copied().unwrap_or_default()];
    words.extend(rest);
    words.push(&ours);
    let variables = variables.map(|variables| format!(" -- {variables}")).unwrap_or_default();
    words.join(" ") + &variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(line: &str) -> (String, Option<Option<u32>>) {
        let mut command: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let jobs = without_jobs(&mut command);
        let words: Vec<String> =
            command.into_iter().map(|word| word.into_string().unwrap()).collect();
        (words.join(" "), jobs)
    }

    #[test]
    fn a_number_of_jobs_is_taken_from_make_and_ninja_alone() {
        for (line, left, jobs) in [
            ("make -j all", "make all", Some(None)),
            ("make -j 4 all", "make all", Some(Some(4))),
            ("/usr/bin/gmake -k -j8", "/usr/bin/gmake -k", Some(Some(8))),
            ("make --jobs=3 -C x", "make -C x", Some(Some(3))),
            ("make --jobs", "make", Some(None)),
            ("make all", "make all", None),
            ("make -- -j", "make -- -j", None),
            ("ninja -j 4 -C out", "ninja -C out", Some(Some(4))),
            ("ninja -j0", "ninja", Some(None)),
            ("cargo build -j 4", "cargo build -j 4", None),
        ] {
            assert_eq!(stripped(line), (left.into(), jobs), "{line}");
        }
    }

    #[test]
    fn flags_that_were_there_stay_except_for_jobs() {
        for (before, after) in [
            ("", " -j4 --jobserver-auth=3,4"),
            ("kw", "kw -j4 --jobserver-auth=3,4"),
            (
                " -j8 --jobserver-auth=7,9 --no-print-directory",
                " --no-print-directory -j4 --jobserver-auth=3,4",
            ),
            ("k -j -- A=b\\ c", "k -j4 --jobserver-auth=3,4 -- A=b\\ c"),
        ] {
            assert_eq!(makeflags(before, 4, "3,4"), after, "{before}");
        }
    }
}
