//! Durations and sizes: a whole number and a unit, never a bare number.

use std::ops::RangeInclusive;

/// A unit and how many of the smallest one it is.
type Unit = (&'static str, u64);

/// In milliseconds.
const DURATIONS: [Unit; 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// In bytes.
const SIZES: [Unit; 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A kind of number with units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Duration,
    Size,
    /// Without units.
    Count,
}

// === impl Measure ===

impl Measure {
    const fn units(self) -> &'static [Unit] {
        match self {
            Self::Duration => &DURATIONS,
            Self::Size => &SIZES,
            Self::Count => &[("", 1)],
        }
    }

    /// What one writes.
    pub(super) const fn form(self) -> &'static str {
        match self {
            Self::Duration => {
                "write a whole number with ms, s, m, h or d, like `250ms`, `12s` or `24h`"
            }
            Self::Size => "write a whole number with B, KiB, MiB or GiB, like `64KiB`",
            Self::Count => "write a whole number",
        }
    }

    /// The same as a regular expression.
    pub(super) const fn pattern(self) -> &'static str {
        match self {
            Self::Duration => "[0-9]+(ms|s|m|h|d)",
            Self::Size => "[0-9]+(B|KiB|MiB|GiB)",
            Self::Count => "[0-9]+",
        }
    }

    /// Reads `value`, in the smallest unit. The error is what is wrong with it and what would be
    /// right; it does not name the value, which may come from the environment.
    pub(super) fn read(
        self,
        value: &str,
        bounds: &RangeInclusive<u64>,
    ) -> Result<u64, (String, String)> {
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = value.split_at(digits);
        if digits == 0 {
            return Err((self.is_not(), self.form().to_owned()));
        }
        let Some(&(_, factor)) = self.units().iter().find(|(name, _)| *name == unit) else {
            let wrong = if unit.is_empty() { "has no unit".to_owned() } else { self.is_not() };
            return Err((wrong, self.form().to_owned()));
        };
        let read = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        match read {
            Some(0) if !bounds.contains(&0) => {
                Err(("is zero".to_owned(), format!("at least {}", self.show(*bounds.start()))))
            }
            Some(read) if bounds.contains(&read) => Ok(read),
            Some(read) if read < *bounds.start() => {
                Err(("is too small".to_owned(), format!("at least {}", self.show(*bounds.start()))))
            }
            Some(_) | None => {
                Err(("is too large".to_owned(), format!("at most {}", self.show(*bounds.end()))))
            }
        }
    }

    /// In the largest unit that is exact; nothing is as good in any, and shown in the smallest.
    pub(super) fn show(self, amount: u64) -> String {
        let is_exact = |(_, factor): &&Unit| amount.is_multiple_of(*factor) && amount >= *factor;
        let unit = self.units().iter().rev().find(is_exact).or(self.units().first());
        let (name, factor) = unit.copied().unwrap_or(("", 1));
        format!("{}{name}", amount / factor)
    }

    fn is_not(self) -> String {
        let kind = match self {
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Count => "whole number",
        };
        format!("is not a {kind}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_as_the_same_amount() {
        for measure in [Measure::Duration, Measure::Size, Measure::Count] {
            for amount in [0, 1, 999, 1_000, 1_024, 90_000, 3_600_000, 1 << 30, u64::MAX] {
                let shown = measure.show(amount);
                assert_eq!(measure.read(&shown, &(0..=u64::MAX)), Ok(amount), "{shown}");
            }
        }
    }

    #[test]
    fn a_number_that_overflows_is_too_large() {
        for text in ["18446744073709551616ms", "18446744073709551615d", "99999999999999999999s"] {
            let (wrong, _) = Measure::Duration.read(text, &(1..=u64::MAX)).unwrap_err();
            assert_eq!(wrong, "is too large", "{text}");
        }
    }

    #[test]
    fn only_a_whole_number_and_a_unit_is_an_amount() {
        for text in ["", "s", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1.0s", "1e3s", "1s2s", "١s"]
        {
            assert!(Measure::Duration.read(text, &(0..=u64::MAX)).is_err(), "{text:?}");
        }
        for text in ["1", "1K", "1KB", "1kib", "1 MiB", "1TiB"] {
            assert!(Measure::Size.read(text, &(0..=u64::MAX)).is_err(), "{text:?}");
        }
    }
}
