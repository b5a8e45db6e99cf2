//! Expressions from text: `choose(2, 0, 1, all(2, 3))`, `weighted(3, 2*0, 1*1, 1*2)`, `any(0-4)`,
//! `dual(any(0, all(1, 2)))`. A range stands for its nodes, one by one.

use crate::expr::{Expr, ExprError};

/// Why a text is not an expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// Something else was expected.
    #[error("expected {expected} at character {at} of the expression")]
    Expected {
        /// What would have been right.
        expected: &'static str,
        /// Where, counted from 1.
        at: usize,
    },
    /// It reads well and means nothing.
    #[error("in the expression: {0}")]
    Meaning(ExprError),
}

/// By hand: the text has the reason in it, and a source would say it a second time.
impl From<ExprError> for ParseError {
    fn from(reason: ExprError) -> Self {
        ParseError::Meaning(reason)
    }
}

/// Deepest nesting and widest range accepted: nothing from outside may exhaust us.
const DEPTH_MAX: usize = 64;
const RANGE_MAX: usize = 1 << 16;

impl std::str::FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Expr, ParseError> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let mut parts = reader.part(0)?;
        reader.spaces();
        match (parts.len(), reader.at == reader.text.len()) {
            (1, true) => Ok(parts.swap_remove(0)),
            (_, true) => Err(reader.expected("one expression")),
            (_, false) => Err(reader.expected("the end")),
        }
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// One part of a list: an expression, or a range of nodes.
    fn part(&mut self, depth: usize) -> Result<Vec<Expr>, ParseError> {
        if depth > DEPTH_MAX {
            return Err(self.expected("less nesting"));
        }
        self.spaces();
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            let first = self.number()?;
            if !self.eat(b'-') {
                return Ok(vec![Expr::node(first)]);
            }
            let last = self.number()?;
            if last < first || last - first > RANGE_MAX {
                return Err(self.expected("a range that goes up"));
            }
            return Ok((first..=last).map(Expr::node).collect());
        }
        let word = self.word();
        self.open()?;
        // Each list is read to its end before anything is made of it: of a text that stops in the
        // middle, that is what is wrong with it.
        let expr = match word.as_str() {
            "any" => Expr::any(self.parts(depth)?)?,
            "all" => Expr::all(self.parts(depth)?)?,
            "majority" => {
                let parts = self.parts(depth)?;
                Expr::choose(parts.len() / 2 + 1, parts)?
            }
            "choose" => {
                let need = self.number()?;
                self.comma()?;
                Expr::choose(need, self.parts(depth)?)?
            }
            "weighted" => {
                let need = self.number()? as u64;
                let mut of = Vec::new();
                while self.eat(b',') {
                    let weight = self.number()? as u64;
                    if !self.eat(b'*') {
                        return Err(self.expected("'*' between a weight and its part"));
                    }
                    of.extend(self.part(depth + 1)?.into_iter().map(|part| (weight, part)));
                }
                self.close()?;
                Expr::weighted(need, of)?
            }
            "dual" => match self.parts(depth)?.as_slice() {
                [one] => one.dual(),
                _ => return Err(self.expected("one expression to dualise")),
            },
            _ => {
                return Err(self.expected("a node, any, all, choose, majority, weighted or dual"));
            }
        };
        Ok(vec![expr])
    }

    /// The rest of a list, with its end.
    fn parts(&mut self, depth: usize) -> Result<Vec<Expr>, ParseError> {
        let mut parts = self.part(depth + 1)?;
        while self.eat(b',') {
            parts.extend(self.part(depth + 1)?);
        }
        self.close()?;
        Ok(parts)
    }

    fn close(&mut self) -> Result<(), ParseError> {
        if self.eat(b')') { Ok(()) } else { Err(self.expected("')' or ','")) }
    }

    fn number(&mut self) -> Result<usize, ParseError> {
        const LARGEST: usize = crate::catalog::NODES_MAX;
        self.spaces();
        let start = self.at;
        let mut value = 0usize;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value * 10 + usize::from(digit - b'0');
            self.at += 1;
            if value > LARGEST {
                return Err(self.expected("a smaller number"));
            }
        }
        if self.at == start { Err(self.expected("a number")) } else { Ok(value) }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).to_lowercase()
    }

    fn open(&mut self) -> Result<(), ParseError> {
        if self.eat(b'(') {
            return Ok(());
        }
        Err(self.expected("a node number, or any(, all(, choose(, majority(, weighted( or dual("))
    }

    fn comma(&mut self) -> Result<(), ParseError> {
        if self.eat(b',') { Ok(()) } else { Err(self.expected("','")) }
    }

    fn eat(&mut self, wanted: u8) -> bool {
        self.spaces();
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn spaces(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> ParseError {
        ParseError::Expected { expected, at: self.at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_again() {
        for text in [
            "choose(2, 0, 1, all(2, 3))",
            "weighted(3, 2*0, 1*1, 1*any(2, 3))",
            "any(0, all(1, 2, 3))",
            "7",
        ] {
            let expr: Expr = text.parse().expect("an expression");
            assert_eq!(expr.to_string(), text);
        }
        let range: Expr = "majority(0-4)".parse().expect("an expression");
        assert_eq!(range.to_string(), "choose(3, 0, 1, 2, 3, 4)");
        let dual: Expr = "dual(any(0, all(1, 2)))".parse().expect("an expression");
        assert_eq!(dual.to_string(), "all(0, any(1, 2))");
    }

    #[test]
    fn nonsense_is_refused_with_the_place() {
        for (text, error) in [
            ("any(0))", "expected the end at character 7 of the expression"),
            ("choose(2,0", "expected ')' or ',' at character 11 of the expression"),
            ("choose(x)", "expected a number at character 8 of the expression"),
            ("choose(3, 0, 1)", "in the expression: cannot need 3 of 2: it must be from 1 to 2"),
            ("all(5-2)", "expected a range that goes up at character 8 of the expression"),
        ] {
            assert_eq!(text.parse::<Expr>().unwrap_err().to_string(), error);
        }
        for text in ["", "any(0,", "some(0)", "weighted(2, 0)", "0-2"] {
            assert!(text.parse::<Expr>().is_err(), "{text}");
        }
        let deep = "any(".repeat(100_000);
        assert!(deep.parse::<Expr>().is_err());
    }
}
