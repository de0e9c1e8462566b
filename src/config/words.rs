//! Small helps for messages: quotes, lists, and the word that was meant.

/// Characters of a value that are quoted at most.
const QUOTED: usize = 60;

/// `written` between backticks, on one line and without the password of a URL.
pub(super) fn quote(written: &str) -> String {
    if written.contains("//") && written.contains('@') {
        return "the value".to_owned();
    }
    let mut quoted: String = written.chars().take(QUOTED).flat_map(visible).collect();
    if written.chars().count() > QUOTED {
        quoted.push('…');
    }
    format!("`{quoted}`")
}

fn visible(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

/// `a`, `b` or `c`.
pub(super) fn one_of(words: &[&str], conjunction: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            format!("{} {conjunction} {last}", rest.join(", "))
        }
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// The known word that is closest to `written`, if it is close at all.
pub(super) fn meant<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().take(QUOTED).collect();
    let allowed = (written.len() / 3).clamp(1, 3);
    let is_near = |word: &&&str| word.chars().count().abs_diff(written.len()) <= allowed;
    let near = known.iter().filter(is_near).map(|word| (distance(&written, word), *word));
    near.filter(|(distance, _)| *distance <= allowed).min().map(|(_, word)| word)
}

/// How many letters must be added, left out, changed or swapped with their neighbour.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i - 1] == *b && *a == to[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_word_is_not() {
        let known = ["address", "token", "scope"];
        assert_eq!(meant("adress", &known), Some("address"));
        assert_eq!(meant("Adresse", &known), Some("address"));
        assert_eq!(meant("tokne", &known), Some("token"));
        assert_eq!(meant("scopes", &known), Some("scope"));
        assert_eq!(meant("backlog", &known), None);
        assert_eq!(meant("", &known), None);
        assert_eq!(meant("scope", &[]), None);
    }

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quote("a\nb"), "`a\\nb`");
        assert_eq!(quote(&"x".repeat(100)).chars().count(), QUOTED + 3);
        assert_eq!(quote("http://me:pw@host"), "the value");
    }
}
