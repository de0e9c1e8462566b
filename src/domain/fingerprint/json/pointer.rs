//! JSON pointers (RFC 6901), followed one step at a time while a text is read.

/// Whether `text` is a JSON pointer: empty, or steps that each begin with a slash, with no tilde
/// but in `~0` and `~1`.
pub fn is_json_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes
}

/// What is left of those pointers that lead through the member `name`.
pub(super) fn below_name<'a>(pointers: &[&'a str], name: &str) -> Vec<&'a str> {
    below(pointers, |step| {
        if step.contains('~') {
            // This order: `~01` is `~1`, and not a slash.
            step.replace("~1", "/").replace("~0", "~") == name
        } else {
            step == name
        }
    })
}

/// What is left of those pointers that lead through the element `index`.
pub(super) fn below_index<'a>(pointers: &[&'a str], index: usize) -> Vec<&'a str> {
    below(pointers, |step| {
        // Only the one way to write a number (no sign, no leading zero) is an index.
        let plain = step == "0" || step.starts_with(|first| matches!(first, '1'..='9'));
        plain && step.parse() == Ok(index)
    })
}

/// Allocates only where a pointer leads on, so a body that nothing is ignored of costs nothing.
fn below<'a>(pointers: &[&'a str], leads: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let follow = |pointer: &&'a str| {
        let path = pointer.strip_prefix('/')?;
        let (step, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        leads(step).then_some(rest)
    };
    pointers.iter().filter_map(follow).collect()
}
