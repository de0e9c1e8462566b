//! Numbers in canonical JSON: equal exactly when they are the same number.
//!
//! RFC 8785 writes every number as the shortest text that reads back as the same double. Applied to
//! an amount of more digits than a double holds it would make `9007199254740993` and
//! `9007199254740992` the same payment. So a number is written that way only where that text
//! denotes the very number that the client wrote (as for `0.1`, `1.0` and `1e2`). Any other is
//! written with all its digits as `<digits>e<exponent>`, without zeros at either end; one with an
//! exponent past 64 bits as it came. All three denote the number that the client wrote, and so no
//! two different ones meet.

/// How long the number at the start of `text` is; `None` without one (RFC 8259 section 6).
pub(super) fn length(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest)?;
    if whole > 1 && rest.starts_with('0') {
        return None;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = &fraction[digits(fraction)?..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        rest = &exponent[digits(exponent)?..];
    }
    Some(text.len() - rest.len())
}

/// Writes a number that [`length`] has found.
pub(super) fn write(text: &str, canonical: &mut Vec<u8>) {
    // Every whole number of 15 digits is a double, and its own shortest text.
    if text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return canonical.extend_from_slice(text.as_bytes());
    }
    let Some(decimal) = Decimal::read(text) else {
        return canonical.extend_from_slice(text.as_bytes());
    };
    let double: f64 = text.parse().unwrap_or(f64::INFINITY);
    if double.is_finite() {
        let mut buffer = ryu_js::Buffer::new();
        let shortest = buffer.format_finite(double);
        if Decimal::read(shortest).as_ref() == Some(&decimal) {
            return canonical.extend_from_slice(shortest.as_bytes());
        }
    }
    decimal.write(canonical);
}

/// The number `±digits × 10^exponent`, in the one form without zeros at either end.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    /// Empty for zero, which has no sign and no exponent.
    digits: Vec<u8>,
    exponent: i64,
}

// === impl Decimal ===

impl Decimal {
    /// `None` where the exponent passes 64 bits.
    fn read(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = [whole, fraction].concat().into_bytes();
        let written = digits.len();
        let kept = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        digits.truncate(kept);
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = exponent
            .parse::<i64>()
            .ok()?
            .checked_sub_unsigned(fraction.len() as u64)?
            .checked_add_unsigned((written - kept) as u64)?;
        Some(Self { negative: text.starts_with('-'), digits, exponent })
    }

    fn write(&self, canonical: &mut Vec<u8>) {
        if self.negative {
            canonical.push(b'-');
        }
        canonical.extend_from_slice(&self.digits);
        canonical.push(b'e');
        canonical.extend_from_slice(self.exponent.to_string().as_bytes());
    }
}

/// How many digits `text` begins with; `None` for none.
fn digits(text: &str) -> Option<usize> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(count)
}
