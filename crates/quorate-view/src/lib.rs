//! What people see in a browser.
//!
//! Plain HTML, CSS and JavaScript modules in `assets/`, embedded in the binary: no bundler, nothing
//! from elsewhere. The same drawing code (`stage.js`, `pictures.js`) serves the dashboard, which
//! loads it file by file from its node, and the replay page, which carries it inside so that it
//! works from a disk.
//!
//! | file | does |
//! |---|---|
//! | `dom.js` | elements, and numbers as people say them |
//! | `pictures.js` | what each protocol's picture shows, in words |
//! | `stage.js` | draws it: nodes on a circle, units, messages |
//! | `words.js` | what the dashboard says, from what a node told |
//! | `dashboard.js`, `panels.js`, `kinds.js`, `charts.js`, `dialogs.js` | the dashboard |
//! | `docs.html`, `docs.js` | what a node answers to, from its OpenAPI document |
//! | `film.js`, `player.js`, `replay.js` | a recorded run, its player, and the page of one |
//! | `play.html`, `play.js`, `hands.js`, `play.css` | the playground: a run that is interfered with |
//! | `style.css` | one look, light and dark |

/// One file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// What it is, for browsers.
    pub media: &'static str,
    /// What is in it.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal $media:literal,)*) => {
        &[$(File {
            name: $name,
            media: $media,
            text: include_str!(concat!("../assets/", $name)),
        },)*]
    };
}

/// The page that every node serves.
pub const DASHBOARD: &str = include_str!("../assets/dashboard.html");

/// The page of what a node answers to, drawn from its OpenAPI document.
pub const DOCS: &str = include_str!("../assets/docs.html");

/// The page of `quorate-lab play`.
pub const PLAY: &str = include_str!("../assets/play.html");

/// What pages are made of.
pub const FILES: &[File] = files! {
    "style.css" "text/css; charset=utf-8",
    "dom.js" "text/javascript; charset=utf-8",
    "pictures.js" "text/javascript; charset=utf-8",
    "stage.js" "text/javascript; charset=utf-8",
    "film.js" "text/javascript; charset=utf-8",
    "player.js" "text/javascript; charset=utf-8",
    "replay.js" "text/javascript; charset=utf-8",
    "play.css" "text/css; charset=utf-8",
    "play.js" "text/javascript; charset=utf-8",
    "hands.js" "text/javascript; charset=utf-8",
    "dashboard.css" "text/css; charset=utf-8",
    "dashboard.js" "text/javascript; charset=utf-8",
    "panels.js" "text/javascript; charset=utf-8",
    "kinds.js" "text/javascript; charset=utf-8",
    "charts.js" "text/javascript; charset=utf-8",
    "words.js" "text/javascript; charset=utf-8",
    "dialogs.js" "text/javascript; charset=utf-8",
    "docs.css" "text/css; charset=utf-8",
    "docs.js" "text/javascript; charset=utf-8",
};

/// The modules of the replay page, each after those it imports.
const REPLAY: [&str; 6] =
    ["dom.js", "pictures.js", "stage.js", "film.js", "player.js", "replay.js"];

/// The file of this name.
pub fn file(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

/// A page that plays a film, with everything it needs inside. The film is JSON, as
/// `assets/film.js` reads it.
pub fn replay(film: &str) -> String {
    let script: String = REPLAY.iter().filter_map(|name| file(name)).map(in_one_scope).collect();
    let style = file("style.css").map_or("", |file| file.text);
    // JSON may be written so that no text in it ends the element it stands in.
    let film = film.replace('<', "\\u003c");
    let page = include_str!("../assets/replay.html");
    let (head, rest) = page.split_once("/*style*/").unwrap_or((page, ""));
    let (middle, rest) = rest.split_once("/*film*/").unwrap_or((rest, ""));
    let (between, tail) = rest.split_once("/*script*/").unwrap_or((rest, ""));
    [head, style, middle, &film, between, &script, tail].concat()
}

/// A module for the one scope that all share on a page without servers: its imports are above it,
/// and nobody needs its exports. That no two modules use one name is a test.
fn in_one_scope(file: &File) -> String {
    let mut text = String::with_capacity(file.text.len());
    for line in file.text.lines().filter(|line| !line.starts_with("import ")) {
        text.push_str(line.strip_prefix("export ").unwrap_or(line));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn modules_of_the_replay_page_share_no_name() {
        let mut seen = BTreeSet::new();
        for name in REPLAY {
            let text = file(name).expect("a file that is embedded").text;
            for line in text.lines() {
                let line = line.strip_prefix("export ").unwrap_or(line);
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                if let (Some("const" | "let" | "function" | "class"), Some(word)) =
                    (words.next(), words.next())
                {
                    assert!(seen.insert(word), "{name} declares {word} once more");
                }
            }
        }
        assert!(seen.contains("Stage") && seen.contains("picture"), "declarations are found");
    }

    #[test]
    fn every_import_is_an_embedded_file_and_stands_on_one_line() {
        for File { name, text, .. } in FILES.iter().filter(|f| f.name.ends_with(".js")) {
            for line in text.lines().filter(|line| line.contains("import ")) {
                let from = line.split('"').nth(1).unwrap_or_default();
                let imported = from.strip_prefix("./").and_then(file);
                assert!(line.starts_with("import ") && imported.is_some(), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_replay_page_stands_alone_and_no_text_breaks_out_of_it() {
        let page = replay(r#"{"title":"</script><script>alert(1)"}"#);
        assert_eq!(page.matches("<script").count(), 2);
        assert!(!page.contains("import ") && !page.contains("/*film*/"));
        for outside in ["http://", "https://"] {
            let allowed = "http://www.w3.org/2000/svg"; // A name, not an address.
            assert!(!page.replace(allowed, "").contains(outside), "{outside} is somewhere else");
        }
    }
}
