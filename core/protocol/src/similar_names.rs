//! Names that were probably meant by other names, for messages.

/// Maximum length of compared names, in bytes: the comparison takes the product of two lengths.
pub const MAX_NAME_BYTES: usize = 64;

/// Returns the name with the fewest changes, if these are at most one in `share` of its characters.
pub fn nearest<'a>(
    name: &str,
    known: &mut dyn Iterator<Item = &'a str>,
    share: usize,
) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let plain = plain(name);
    let distances = known.filter_map(|known| {
        let other = self::plain(known);
        let distance = distance(&plain, &other);
        let longest = plain.len().max(other.len());
        (distance * share <= longest).then_some((distance, known))
    });
    let (_, found) = distances.min_by_key(|(distance, _)| *distance)?;
    Some(found)
}

/// Returns the letters and digits of a name, in lower case: `userId` is like `user_id`.
fn plain(name: &str) -> Vec<char> {
    let letters = name.chars().filter(|char| char.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns how many characters have to be inserted, removed, replaced or swapped with the next one.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_last = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1; to.len() + 1];
        for (column, &b) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut least = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && a == to[column - 1] && from[row - 1] == b {
                least = least.min(before_last[column - 1] + 1);
            }
            current[column + 1] = least;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}
