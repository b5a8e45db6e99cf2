//! A page that needs nothing but itself: figures are part of the text.

/// An HTML page under construction.
#[derive(Debug)]
pub(crate) struct Page {
    html: String,
}

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#222}table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #ccc;\
padding:.3rem .8rem;text-align:left;vertical-align:top}figure{margin:1.5rem 0}svg{max-width:100%;\
height:auto}\
.wide{overflow-x:auto;font-size:.85rem}.wide td,.wide th{padding:.3rem .5rem;white-space:nowrap}\
figcaption{color:#555}.yes{color:#1a7f37;font-weight:bold}.no{color:#b3261e;\
font-weight:bold}\
@media (prefers-color-scheme:dark){body{background:#16181c;color:#ddd}td,th{border-color:#444}\
figcaption{color:#aaa}svg{filter:invert(.9) hue-rotate(180deg)}.yes{color:#5fd07f}\
.no{color:#ff8a80}}";

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        let title = escape(title);
        Page {
            html: format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta name=\"viewport\" content=\"width=device-width\">\
                 <title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
            ),
        }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.html.push_str(&format!("<h2>{}</h2>\n", escape(text)));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.html.push_str(&format!("<p>{}</p>\n", escape(text)));
    }

    pub(crate) fn figure(&mut self, svg: &str, caption: &str) {
        let caption = escape(caption);
        self.html.push_str(&format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>\n"));
    }

    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let cells = |cells: &mut dyn Iterator<Item = &str>, tag: &str| {
            cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
        };
        self.html.push_str("<div class=\"wide\"><table><tr>");
        self.html.push_str(&cells(&mut head.iter().copied(), "th"));
        self.html.push_str("</tr>\n");
        for row in rows {
            let row = cells(&mut row.iter().map(String::as_str), "td");
            self.html.push_str(&format!("<tr>{row}</tr>\n"));
        }
        self.html.push_str("</table></div>\n");
    }

    /// What somebody claims, what was found, and whether that agrees.
    pub(crate) fn claim(&mut self, claimed: &str, found: &str, holds: bool) {
        let (class, verdict) = if holds { ("yes", "holds") } else { ("no", "does not hold") };
        self.html.push_str(&format!(
            "<table><tr><th>claimed</th><td>{}</td></tr><tr><th>found</th><td>{}</td></tr>\
             <tr><th></th><td class=\"{class}\">{verdict}</td></tr></table>\n",
            escape(claimed),
            escape(found)
        ));
    }

    pub(crate) fn finish(mut self) -> String {
        self.html.push_str("</body></html>\n");
        self.html
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_cannot_become_markup() {
        let mut page = Page::new("a < b");
        page.claim("x & y", "<script>", false);
        let html = page.finish();
        assert!(html.contains("a &lt; b") && html.contains("&lt;script&gt;"));
        assert!(html.contains("does not hold"));
    }
}
