//! Every page of the documentation is found from `docs/README.md`, by links alone, and every link
//! of a page leads to something that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

const DOOR: &str = "docs/README.md";

pub(crate) fn check(root: &Path, files: &[(PathBuf, String)], findings: &mut Vec<String>) {
    let is_page = |path: &Path| path.extension().is_some_and(|ending| ending == "md");
    let pages: BTreeMap<&Path, Page> = files
        .iter()
        .filter(|(path, _)| is_page(path))
        .map(|(path, text)| (path.as_path(), Page::read(text)))
        .collect();
    let mut found = BTreeSet::new();
    let mut ahead = vec![PathBuf::from(DOOR)];
    while let Some(path) = ahead.pop() {
        let Some(page) = pages.get(path.as_path()) else { continue };
        if !found.insert(path.clone()) {
            continue;
        }
        ahead.extend(page.links.iter().map(|link| target(&path, link).0));
    }
    for (path, page) in &pages {
        if path.starts_with("docs") && !found.contains(*path) {
            findings.push(format!("{}: no way leads here from {DOOR}", path.display()));
        }
        for link in &page.links {
            let (to, heading) = target(path, link);
            let there = match (pages.get(to.as_path()), heading) {
                (Some(page), Some(heading)) => page.headings.contains(&heading),
                (Some(_), None) => true,
                (None, _) => root.join(&to).exists(),
            };
            if !there {
                findings.push(format!("{}: {link} leads nowhere", path.display()));
            }
        }
    }
}

struct Page {
    links: Vec<String>,
    /// As links name them.
    headings: BTreeSet<String>,
}

impl Page {
    fn read(text: &str) -> Page {
        let (mut links, mut headings) = (Vec::new(), BTreeSet::new());
        let mut code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                code = !code;
            } else if code {
                continue;
            }
            if line.starts_with('#') {
                headings.insert(name(line.trim_start_matches('#').trim()));
            }
            let anchors = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            headings.extend(anchors.map(str::to_owned));
            let ends = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            let ours = ends.filter(|end| !end.is_empty() && !end.contains(':'));
            links.extend(ours.map(str::to_owned));
        }
        Page { links, headings }
    }
}

/// What those who show pages make of a heading.
fn name(heading: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' ');
    // Of a link in a heading its words stay.
    let words = heading.split("](").enumerate().map(|(part, text)| match part {
        0 => text,
        _ => text.split_once(')').map_or("", |(_, rest)| rest),
    });
    let text = words.collect::<String>().to_lowercase();
    text.chars().filter(|letter| kept(*letter)).map(|l| if l == ' ' { '-' } else { l }).collect()
}

/// The file to which a link of a page leads, and the heading in it.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading.to_owned())),
        None => (link, None),
    };
    if file.is_empty() {
        return (page.to_path_buf(), heading);
    }
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    (path, heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(pages: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(PathBuf, String)> =
            pages.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect();
        let mut findings = Vec::new();
        check(Path::new("/nowhere"), &files, &mut findings);
        findings
    }

    #[test]
    fn a_page_is_found_over_others_and_through_folders() {
        let door = ("docs/README.md", "[a](guides/a.md#what-it-is)");
        let guide = ("docs/guides/a.md", "## What `it` is\n[b](../b.md) [x](https://x.example)");
        let last = ("docs/b.md", "```text\n[shown](and-not-meant.md)\n```\n");
        assert!(findings(&[door, guide, last]).is_empty());
        assert_eq!(findings(&[door, guide, last, ("docs/c.md", "")]).len(), 1, "nobody finds it");
    }

    #[test]
    fn a_link_to_no_file_or_heading_is_found() {
        let page = "[a](a.md)\n[b](#missing) [c](#there)\n# There\n";
        let found = findings(&[("docs/README.md", page)]);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
