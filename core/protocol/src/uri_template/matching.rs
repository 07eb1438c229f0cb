//! Matching: from a URI back to variables.
//!
//! A backtracking search that remembers failures: it continues only once from each combination of a position in the
//! template and a position in the URI, and tries each end of a value once for all positions where the value may begin.
//! So time is linear in the URI, except for templates that explode several variables or read pairs in several
//! positions; every step is charged.

use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};

use mcpline_schema::StepBudget;

use super::{
    Expression, MatchLimitReached, Modifier, Part, Variable, VariableSpecifier, Variables,
};

/// How many bytes are read per step.
const BYTES_PER_STEP: usize = 8;

/// The longest character in a URI, in bytes: four bytes of UTF-8, each percent-encoded.
const LONGEST_CHARACTER: usize = 12;

/// The variables for which these parts produce the URI, if there are any.
///
/// # Errors
/// When the budget is exhausted before that is known.
pub(super) fn matches(
    parts: &[Part],
    uri: &str,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Variables>, MatchLimitReached> {
    let mut search = Search {
        parts,
        uri,
        found: Vec::new(),
        failed: HashSet::new(),
        failed_ends: HashMap::new(),
        segments: HashMap::new(),
        budget,
        is_spent: false,
    };
    let matched = search.part(0, 0);
    if search.is_spent {
        return Err(MatchLimitReached);
    }
    Ok(matched.then(|| collect(uri, search.found)).flatten())
}

/// A value that was found: a text, an item of a list, or a pair of a map.
struct Found<'a> {
    specifier: &'a VariableSpecifier,
    key: Option<Range<usize>>,
    value: Range<usize>,
}

/// A search state: the part of the template, the variable in its expression, whether a variable of that expression has
/// been found, and the position in the URI.
type SearchState = (usize, usize, bool, usize);

struct Search<'a, 'b, 'c> {
    parts: &'a [Part],
    uri: &'a str,
    found: Vec<Found<'a>>,
    failed: HashSet<SearchState>,
    /// By variable (part and number): a range of ends of its value after which nothing matches.
    failed_ends: HashMap<(usize, usize), RangeInclusive<usize>>,
    /// By variable: where one of its values began, and where it had to end at the latest.
    segments: HashMap<(usize, usize), RangeInclusive<usize>>,
    budget: &'b mut StepBudget<'c>,
    is_spent: bool,
}

impl<'a> Search<'a, '_, '_> {
    /// Takes this many steps; `false` if fewer are left, so that nothing matches.
    fn step(&mut self, steps: usize) -> bool {
        self.is_spent |= self.budget.charge(steps).is_none();
        !self.is_spent
    }

    /// Whether the parts from `index` on match the URI from `at` on.
    fn part(&mut self, index: usize, at: usize) -> bool {
        if !self.step(1) {
            return false;
        }
        let parts = self.parts;
        match parts.get(index) {
            None => at == self.uri.len(),
            Some(Part::Literal(text)) => {
                self.goes_on(at, text) && self.part(index + 1, at + text.len())
            }
            Some(Part::Expression(expression)) if expression.operator.named => {
                let found = self.found.len();
                let end = self.pairs(expression, at);
                let matched = end.is_some_and(|end| self.part(index + 1, end));
                if !matched {
                    self.found.truncate(found);
                }
                matched
            }
            Some(Part::Expression(expression)) => self.variable(index, expression, 0, false, at),
        }
    }

    /// Whether the variables from `number` on, and all later parts, match from `at` on.
    fn variable(
        &mut self,
        index: usize,
        expression: &'a Expression,
        number: usize,
        started: bool,
        at: usize,
    ) -> bool {
        let operator = expression.operator;
        if number == expression.variables.len() {
            return (started || !operator.first.is_empty()) && self.part(index + 1, at);
        }
        let state = (index, number, started, at);
        if self.failed.contains(&state) {
            return false;
        }
        let mut separator = [0; 4];
        let prefix = if started {
            operator.separator.encode_utf8(&mut separator)
        } else {
            operator.first
        };
        let matched = (self.goes_on(at, prefix)
            && self.values(index, expression, number, at + prefix.len()))
            || self.variable(index, expression, number + 1, started, at);
        if !matched {
            self.failed.insert(state);
        }
        matched
    }

    /// Tries a value that starts at `start`, or as many as possible if the variable is exploded.
    fn values(
        &mut self,
        index: usize,
        expression: &'a Expression,
        number: usize,
        start: usize,
    ) -> bool {
        let specifier = &expression.variables[number];
        let stops = stops(expression, specifier);
        let separator = expression.operator.separator;
        let Some(end) = self.end_of_first((index, number), start, stops) else {
            return false;
        };
        let mut items = Vec::new();
        let mut item = Some(start..end);
        while let Some(last) = item.take() {
            if specifier.modifier == Modifier::Explode
                && !last.is_empty()
                && self.uri[last.end..].starts_with(separator)
            {
                let next = last.end + separator.len_utf8();
                item = self.end_of(next, stops).map(|end| next..end);
            }
            items.push(last);
        }
        if !self.step(items.len()) {
            return false;
        }
        let Some(mut last) = items.pop() else {
            return false;
        };
        let found = self.found.len();
        let whole = items.iter().map(|item| Found {
            specifier,
            key: None,
            value: item.clone(),
        });
        self.found.extend(whole);
        loop {
            if self.value(index, expression, number, last) {
                return true;
            }
            // One item less: the previous one becomes the last.
            let Some(before) = items.pop() else { break };
            self.found.pop();
            last = before;
        }
        self.found.truncate(found);
        false
    }

    /// The latest end of a value that starts at `start`: before the first of these bytes.
    fn end_of(&mut self, start: usize, stops: &[u8]) -> Option<usize> {
        let rest = self.uri.as_bytes().get(start..)?;
        let length = rest.iter().position(|byte| stops.contains(byte));
        let length = length.unwrap_or(rest.len());
        self.step(length / BYTES_PER_STEP).then_some(start + length)
    }

    /// Does the same for a value of this variable, without reading again what was read for an earlier one.
    fn end_of_first(&mut self, place: (usize, usize), start: usize, stops: &[u8]) -> Option<usize> {
        let end = match self.segments.get(&place).cloned() {
            Some(known) if known.contains(&start) => return Some(*known.end()),
            Some(known) if start < *known.start() => {
                let between = self.uri.as_bytes().get(start..*known.start())?;
                if !self.step(between.len() / BYTES_PER_STEP) {
                    return None;
                }
                let length = between.iter().position(|byte| stops.contains(byte));
                length.map_or(*known.end(), |length| start + length)
            }
            _ => self.end_of(start, stops)?,
        };
        self.segments.insert(place, start..=end);
        Some(end)
    }

    /// Tries every length of a value, up to `longest`, the longest first.
    fn value(
        &mut self,
        index: usize,
        expression: &'a Expression,
        number: usize,
        longest: Range<usize>,
    ) -> bool {
        let specifier = &expression.variables[number];
        let last = number + 1 == expression.variables.len();
        // A fragment may be empty; anything else must not, because it would match where there is nothing.
        let start = longest.start;
        let shortest = start + usize::from(expression.operator.symbol != Some('#'));
        let longest = match specifier.modifier {
            Modifier::Prefix(most) => {
                let most = most.saturating_mul(LONGEST_CHARACTER);
                longest.end.min(start.saturating_add(most))
            }
            Modifier::None | Modifier::Explode => longest.end,
        };
        let failed = self.failed_ends.get(&(index, number)).cloned();
        let mut next = Some(longest);
        while let Some(end) = next.filter(|end| *end >= shortest) {
            if let Some(failed) = failed.as_ref().filter(|failed| failed.contains(&end)) {
                next = failed.start().checked_sub(1);
                continue;
            }
            next = end.checked_sub(1);
            if !self.step(1) {
                return false;
            }
            // Most lengths fail here, before anything is remembered about them.
            let goes_on = match self.parts.get(index + 1) {
                None => end == self.uri.len(),
                Some(Part::Literal(text)) => self.goes_on(end, text),
                Some(Part::Expression(_)) => true,
            };
            if (last && !goes_on)
                || !may_split_at(self.uri, end)
                || self.is_too_long(specifier, start..end)
            {
                continue;
            }

            self.found.push(Found {
                specifier,
                key: None,
                value: start..end,
            });
            if self.variable(index, expression, number + 1, true, end) {
                return true;
            }
            self.found.pop();
        }
        // For a value of limited length, the possible ends depend on its start.
        if shortest <= longest && !matches!(specifier.modifier, Modifier::Prefix(_)) {
            let ends = match failed {
                // Adjacent ends, or ends that were tried before, form one range.
                Some(failed) if shortest <= *failed.end() + 1 && *failed.start() <= longest + 1 => {
                    shortest.min(*failed.start())..=longest.max(*failed.end())
                }
                _ => shortest..=longest,
            };
            self.failed_ends.insert((index, number), ends);
        }
        false
    }

    /// Reads the `name=value` pairs that belong to the expression, and returns where they end; `None` if one makes a
    /// match impossible.
    fn pairs(&mut self, expression: &'a Expression, at: usize) -> Option<usize> {
        let operator = expression.operator;
        let stops: &[char] = if operator.separator == '&' {
            &['&', '#']
        } else {
            &[';', '/', '?', '#']
        };
        let first = self.found.len();
        let mut end = at;
        let mut prefix = operator.first;
        let mut separator = [0; 4];
        let separator = operator.separator.encode_utf8(&mut separator);
        while let Some(rest) = self.uri[end..].strip_prefix(prefix) {
            let start = end + prefix.len();
            let pair = &rest[..rest.find(stops).unwrap_or(rest.len())];
            let name = &pair[..pair.find('=').unwrap_or(pair.len())];
            let compared = expression.variables.len() + pair.len() / BYTES_PER_STEP;
            if !self.step(1 + compared) {
                return None;
            }
            let value = (start + name.len() + 1).min(start + pair.len())..start + pair.len();
            let named = expression
                .variables
                .iter()
                .find(|specifier| specifier.name == name);
            let exploded = |specifier: &&VariableSpecifier| specifier.modifier == Modifier::Explode;
            let (specifier, key) = match named
                .or_else(|| expression.variables.iter().find(exploded))
            {
                Some(specifier) if named.is_some() => (specifier, None),
                Some(specifier) if !name.is_empty() => (specifier, Some(start..start + name.len())),
                _ => break,
            };
            let again = !exploded(&specifier)
                && self.found[first..]
                    .iter()
                    .any(|found| found.specifier == specifier);
            if again || self.is_too_long(specifier, value.clone()) {
                return None;
            }
            self.found.push(Found {
                specifier,
                key,
                value,
            });
            end = start + pair.len();
            prefix = separator;
        }
        Some(end)
    }

    fn goes_on(&self, at: usize, text: &str) -> bool {
        self.uri.as_bytes()[at..].starts_with(text.as_bytes())
    }

    fn is_too_long(&mut self, specifier: &VariableSpecifier, value: Range<usize>) -> bool {
        match specifier.modifier {
            Modifier::Prefix(most) => {
                if !self.step(1 + value.len() / BYTES_PER_STEP) {
                    return true;
                }
                decode(&self.uri[value]).is_none_or(|value| value.chars().count() > most)
            }
            Modifier::None | Modifier::Explode => false,
        }
    }
}

/// The bytes that end a value.
fn stops(expression: &Expression, specifier: &VariableSpecifier) -> &'static [u8] {
    let alone = expression.variables.len() == 1 && specifier.modifier != Modifier::Explode;
    match (
        expression.operator.allows_reserved,
        expression.operator.separator,
        alone,
    ) {
        (true, _, true) => b"",
        (true, _, false) => b",",
        (false, ',', false) => b"/?#,",
        (false, '.', false) => b"/?#.",
        (false, _, _) => b"/?#",
    }
}

/// Whether a value may end before `at`: not within a character, percent-encoded or not.
fn may_split_at(uri: &str, at: usize) -> bool {
    let bytes = uri.as_bytes();
    let within =
        |back: usize| at >= back && bytes[at - back] == b'%' && at - back + 2 < bytes.len();
    let continues = matches!(
        bytes.get(at..),
        Some([b'%', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, ..])
    );
    uri.is_char_boundary(at) && !within(1) && !within(2) && !continues
}

/// Decodes percent-encoding; `None` if it is incomplete or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'%' {
            let (digits, behind) = behind.split_at_checked(2)?;
            let digit = |at: usize| {
                char::from(digits[at])
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            decoded.push(digit(0)? << 4 | digit(1)?);
            rest = behind;
        } else {
            decoded.push(byte);
            rest = behind;
        }
    }
    String::from_utf8(decoded).ok()
}

/// Collects the values that were found. A variable that occurs twice in the template must have the same value.
fn collect(uri: &str, found: Vec<Found<'_>>) -> Option<Variables> {
    let mut variables = Variables::new();
    for Found {
        specifier,
        key,
        value,
    } in found
    {
        let name = &specifier.name;
        let exploded = specifier.modifier == Modifier::Explode;
        let value = decode(&uri[value])?;
        let key = match key {
            Some(key) => Some(decode(&uri[key])?),
            None => None,
        };
        let known = variables
            .0
            .iter_mut()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value);
        match (known, key, exploded) {
            (None, Some(key), _) => variables.set(name.clone(), Variable::Map(vec![(key, value)])),
            (None, None, true) => variables.set(name.clone(), Variable::List(vec![value])),
            (None, None, false) => variables.set(name.clone(), Variable::Text(value)),
            (Some(Variable::Map(pairs)), Some(key), _) => pairs.push((key, value)),
            (Some(Variable::List(items)), None, true) => items.push(value),
            (Some(Variable::Text(text)), None, false) if *text == value => {}
            _ => return None,
        }
    }
    Some(variables)
}
