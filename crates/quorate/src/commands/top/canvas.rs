//! A sheet of characters with styles: painted by `draw`, written to a terminal in one go, and read
//! by tests as the text that people see.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// How a piece of text looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
}

/// A rectangle of the sheet, in columns and rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// The rows from `from` on, at most `height` of them.
    pub(super) fn rows(self, from: usize, height: usize) -> Area {
        let from = from.min(self.height);
        Area { top: self.top + from, height: height.min(self.height - from), ..self }
    }

    /// Without so much at each side.
    pub(super) fn inside(self, columns: usize, rows: usize) -> Area {
        Area {
            left: self.left + columns,
            top: self.top + rows,
            width: self.width.saturating_sub(2 * columns),
            height: self.height.saturating_sub(2 * rows),
        }
    }
}

/// How wide a column of a table is: so much, or its share of what the others leave.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Fixed(usize),
    Share(usize),
}

/// Rows under a header, in a frame with a title.
pub(super) struct Table<'a> {
    pub(super) title: String,
    pub(super) columns: &'a [(&'a str, Width)],
    pub(super) rows: Vec<Vec<(String, Style)>>,
    /// The row that is chosen, which is always in sight.
    pub(super) cursor: Option<usize>,
}

/// What stands in a place: a character with the marks on it, or nothing to the right of a character
/// that is two columns wide.
#[derive(Clone, PartialEq, Eq)]
struct Cell {
    symbol: String,
    style: Style,
    chosen: bool,
}

pub(super) struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        let blank = Cell { symbol: " ".into(), style: Style::Plain, chosen: false };
        Canvas { width, height, cells: vec![blank; width * height] }
    }

    pub(super) fn area(&self) -> Area {
        Area { left: 0, top: 0, width: self.width, height: self.height }
    }

    /// Writes on the first row of an area, as far as it fits; returns what is left of that row.
    /// Characters that would move the cursor are left out.
    pub(super) fn write(&mut self, area: Area, text: &str, style: Style) -> Area {
        let mut used = 0;
        for c in text.chars() {
            let Some(width) = c.width() else { continue };
            if area.height == 0 || used + width > area.width {
                break;
            }
            let at = area.top * self.width + area.left + used;
            match width {
                0 => self.mark(at, c),
                _ => {
                    self.cut(at);
                    self.cut(at + width);
                    (self.cells[at].symbol, self.cells[at].style) = (c.into(), style);
                    if width == 2 {
                        self.cells[at + 1].symbol.clear();
                    }
                }
            }
            used += width;
        }
        Area { left: area.left + used, width: area.width - used, ..area }
    }

    /// Blanks a character of two columns if this place is its second one.
    fn cut(&mut self, place: usize) {
        if self.cells.get(place).is_some_and(|cell| cell.symbol.is_empty()) {
            self.cells[place - 1].symbol = " ".into();
            self.cells[place].symbol = " ".into();
        }
    }

    /// Puts a mark on the character before a place.
    fn mark(&mut self, place: usize, mark: char) {
        let before = self.cells[..place].iter_mut().rev().find(|cell| !cell.symbol.is_empty());
        if let Some(cell) = before {
            cell.symbol.push(mark);
        }
    }

    /// Draws a frame around an empty area, and returns what is inside.
    pub(super) fn frame(&mut self, area: Area, title: &str) -> Area {
        let inside = area.inside(1, 1);
        if area.width < 2 || area.height < 2 {
            return Area { height: 0, ..inside };
        }
        let line = |[left, middle, right]: [&str; 3]| {
            format!("{left}{}{right}", middle.repeat(inside.width))
        };
        for row in 0..area.height {
            let parts = match row {
                0 => ["┌", "─", "┐"],
                _ if row + 1 == area.height => ["└", "─", "┘"],
                _ => ["│", " ", "│"],
            };
            self.write(area.rows(row, 1), &line(parts), Style::Plain);
        }
        self.write(Area { top: area.top, height: 1, ..inside }, title, Style::Plain);
        inside
    }

    pub(super) fn table(&mut self, area: Area, table: &Table<'_>) {
        let inside = self.frame(area, &table.title);
        let columns = columns(inside, table.columns.iter().map(|(_, width)| *width));
        for (column, (name, _)) in columns.iter().zip(table.columns) {
            self.write(*column, name, Style::Dim);
        }
        let seen = inside.height.saturating_sub(1);
        let hidden = table.cursor.map_or(0, |cursor| (cursor + 1).saturating_sub(seen));
        for (number, row) in table.rows.iter().enumerate().skip(hidden).take(seen) {
            let line = inside.rows(1 + number - hidden, 1);
            for (column, (text, style)) in columns.iter().zip(row) {
                self.write(Area { top: line.top, height: 1, ..*column }, text, *style);
            }
            if table.cursor == Some(number) {
                let from = line.top * self.width + line.left;
                self.cells[from..from + line.width].iter_mut().for_each(|cell| cell.chosen = true);
            }
        }
    }

    /// Writes lines, broken between words, or anywhere in a word that is longer than a row. Says
    /// how many rows that took.
    pub(super) fn wrapped(&mut self, area: Area, text: &str, style: Style) -> usize {
        let mut row = 0;
        for line in text.lines() {
            let mut rest = area.rows(row, 1);
            for word in line.split_inclusive(' ') {
                let columns: usize = word.trim_end().chars().filter_map(|c| c.width()).sum();
                let mut full = columns > rest.width && columns <= area.width;
                for c in word.chars() {
                    full |= c != ' ' && c.width().is_some_and(|width| width > rest.width);
                    if std::mem::take(&mut full) {
                        row += 1;
                        rest = area.rows(row, 1);
                    }
                    rest = self.write(rest, c.encode_utf8(&mut [0; 4]), style);
                }
            }
            row += 1;
        }
        row.min(area.height)
    }

    /// What people read, without styles.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        let line = |cells: &[Cell]| cells.iter().map(|cell| &*cell.symbol).collect::<String>();
        self.cells.chunks(self.width).map(|row| line(row).trim_end().to_owned() + "\n").collect()
    }

    /// What makes a terminal show this.
    pub(super) fn escapes(&self, colors: bool) -> String {
        let mut text = String::from("\x1b[H");
        for (number, row) in self.cells.chunks(self.width.max(1)).enumerate() {
            if number > 0 {
                text.push_str("\r\n");
            }
            let mut last = (Style::Plain, false);
            for cell in row {
                if (cell.style, cell.chosen) != last {
                    last = (cell.style, cell.chosen);
                    let chosen = if cell.chosen { ";7" } else { "" };
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\x1b[{}{chosen}m", code(cell.style, colors));
                }
                text.push_str(&cell.symbol);
            }
            text.push_str("\x1b[0m");
        }
        text
    }
}

/// Where the columns of a table are, with a space between them.
fn columns(area: Area, widths: impl Iterator<Item = Width> + Clone) -> Vec<Area> {
    let (mut fixed, mut shares) = (0, 0);
    for width in widths.clone() {
        match width {
            Width::Fixed(columns) => fixed += columns + 1,
            Width::Share(share) => (fixed, shares) = (fixed + 1, shares + share),
        }
    }
    let free = (area.width + 1).saturating_sub(fixed);
    let (mut left, mut taken, mut shared) = (0, 0, 0);
    let column = |width| {
        let width = match width {
            Width::Fixed(columns) => columns,
            Width::Share(share) => {
                // Rounded where columns end, so that together they are as wide as what is free.
                taken += share;
                let end = (2 * free * taken + shares) / (2 * shares);
                let width = end - shared;
                shared = end;
                width
            }
        };
        let start = left.min(area.width);
        left += width + 1;
        Area { left: area.left + start, width: width.min(area.width - start), ..area.rows(0, 1) }
    };
    widths.map(column).collect()
}

fn code(style: Style, colors: bool) -> &'static str {
    match style {
        Style::Bold => "0;1",
        Style::Dim => "0;2",
        Style::Red if colors => "0;31",
        Style::Yellow if colors => "0;33",
        Style::Green if colors => "0;32",
        Style::Plain | Style::Red | Style::Yellow | Style::Green => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients name themselves as they like; what they say must not get out of its place.
    #[test]
    fn wide_marked_and_dangerous_characters_stay_in_their_columns() {
        let mut canvas = Canvas::new(6, 2);
        let row = canvas.area().rows(0, 1);
        let rest = canvas.write(row, "e\u{301}\x1b[2J\n東", Style::Plain);
        assert_eq!((rest.left, rest.width), (6, 0));
        assert_eq!(canvas.text(), "e\u{301}[2J東\n\n");
        canvas.write(row, "abcde東", Style::Red);
        assert_eq!(canvas.text(), "abcde\n\n", "half of it has no place");
        let shown = canvas.escapes(true);
        assert_eq!(shown, "\x1b[H\x1b[0;31mabcde\x1b[0m \x1b[0m\r\n      \x1b[0m");
    }

    #[test]
    fn a_sheet_may_be_too_small_for_anything() {
        for (width, height) in [(0, 0), (1, 1), (2, 2), (3, 1), (7, 4)] {
            let mut canvas = Canvas::new(width, height);
            let columns = [("who", Width::Fixed(5)), ("what for", Width::Share(1))];
            let rows = vec![vec![("ann".into(), Style::Plain), ("a\u{301}".into(), Style::Dim)]];
            let table = Table { title: " 1 ".into(), columns: &columns, rows, cursor: Some(0) };
            canvas.table(canvas.area(), &table);
            canvas.wrapped(canvas.area().inside(1, 1), "some words that do not fit", Style::Plain);
            canvas.escapes(false);
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_long_words_anywhere() {
        let mut canvas = Canvas::new(9, 5);
        canvas.wrapped(canvas.area(), "two words and more\n\na-very-long-word", Style::Plain);
        assert_eq!(canvas.text(), "two words\nand more\n\na-very-lo\nng-word\n");
    }
}
