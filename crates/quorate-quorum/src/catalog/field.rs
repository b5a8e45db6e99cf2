//! Finite fields of every prime-power order, as tables: the coordinates of projective planes and
//! spaces. Elements are polynomials over GF(p) written as numbers in base p; products are reduced
//! by the first irreducible monic polynomial found.

/// GF(q).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    order: usize,
    sums: Vec<u16>,
    products: Vec<u16>,
}

/// (p, m) with p prime and q = p^m, if q is a prime power.
pub fn prime_power(q: usize) -> Option<(usize, u32)> {
    let p = (2..=q).find(|d| q.is_multiple_of(*d))?;
    let mut power = p;
    let mut exponent = 1;
    while power < q {
        power *= p;
        exponent += 1;
    }
    (power == q).then_some((p, exponent))
}

impl Field {
    /// Largest order for which tables are made.
    pub const ORDER_MAX: usize = 256;

    /// The field of order `q`; `None` if q is not a prime power or too large.
    pub fn new(q: usize) -> Option<Field> {
        if q > Self::ORDER_MAX {
            return None;
        }
        let (p, degree) = prime_power(q)?;
        let degree = degree as usize;
        let digits = |number: usize| -> Vec<usize> {
            (0..degree).map(|i| number / p.pow(i as u32) % p).collect()
        };
        let number = |digits: &[usize]| digits.iter().rev().fold(0, |n, digit| n * p + digit);
        let mut sums = Vec::with_capacity(q * q);
        for a in 0..q {
            for b in 0..q {
                let sum: Vec<usize> =
                    digits(a).iter().zip(digits(b)).map(|(x, y)| (x + y) % p).collect();
                sums.push(number(&sum) as u16);
            }
        }
        // x^degree equals the negated lower part of the modulus: try each until there are no zero
        // divisors, which for a finite ring means a field.
        let products = (0..q).find_map(|lower| {
            let lower: Vec<usize> = digits(lower).iter().map(|c| (p - c) % p).collect();
            let mut products = Vec::with_capacity(q * q);
            for a in 0..q {
                for b in 0..q {
                    let product = number(&multiply(&digits(a), &digits(b), &lower, p));
                    if product == 0 && a != 0 && b != 0 {
                        return None;
                    }
                    products.push(product as u16);
                }
            }
            Some(products)
        })?;
        Some(Field { order: q, sums, products })
    }

    /// Number of elements.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Sum.
    pub fn plus(&self, a: usize, b: usize) -> usize {
        usize::from(self.sums[a * self.order + b])
    }

    /// Product.
    pub fn times(&self, a: usize, b: usize) -> usize {
        usize::from(self.products[a * self.order + b])
    }

    /// Scalar product of two vectors.
    pub fn dot(&self, a: &[usize], b: &[usize]) -> usize {
        a.iter().zip(b).fold(0, |sum, (x, y)| self.plus(sum, self.times(*x, *y)))
    }
}

/// Product of two polynomials, x^degree replaced by `top`.
fn multiply(a: &[usize], b: &[usize], top: &[usize], p: usize) -> Vec<usize> {
    let degree = a.len();
    let mut product = vec![0; 2 * degree - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            product[i + j] = (product[i + j] + x * y) % p;
        }
    }
    for high in (degree..product.len()).rev() {
        let coefficient = std::mem::take(&mut product[high]);
        for (low, c) in top.iter().enumerate() {
            let place = high - degree + low;
            product[place] = (product[place] + coefficient * c) % p;
        }
    }
    product.truncate(degree);
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prime_power_gives_a_field_and_nothing_else_does() {
        for q in 1..=32 {
            let expected = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32];
            let field = Field::new(q);
            assert_eq!(field.is_some(), expected.contains(&q), "order {q}");
            let Some(field) = field else { continue };
            for a in 1..q {
                // Each row of the product table is a permutation: there are inverses.
                let mut row: Vec<usize> = (0..q).map(|b| field.times(a, b)).collect();
                row.sort_unstable();
                assert_eq!(row, (0..q).collect::<Vec<_>>());
                for (b, c) in [(1, a), (q - 1, 1), (q / 2, q - 1)] {
                    let left = field.times(a, field.plus(b, c));
                    assert_eq!(left, field.plus(field.times(a, b), field.times(a, c)));
                }
            }
        }
    }
}
