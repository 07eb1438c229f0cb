//! Schemas from a small vocabulary. All references resolve, and none forms a cycle without a step into the value,
//! because the result would be undefined.

use serde_json::{Map, Value, json};

use crate::Dialect;
use crate::random::Random;
use crate::values;

/// Number of definitions that references can point to.
const DEFINITIONS: usize = 3;

const TYPES: &[&str] = &[
    "null", "boolean", "integer", "number", "string", "array", "object",
];

const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "time",
    "email",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "json-pointer",
    "regex",
    "unknown",
];

const PARTS: &[&str] = &[
    "a", "b", "c", "é", "😀", "1", "-", "[ab]", "[^a]", "[a-c1-3]", "\\d", "\\D", "\\w", "\\W",
    "\\s", "\\S", "(a|b)", "(?:ab)", "(?=a)", "(?!b)", "\\u0061", "\\p{L}", "\\p{Lu}", "\\t",
    "\\x61", "\\/", "\\-",
];

/// The position of a schema, which decides what it may refer to.
#[derive(Clone, Copy)]
struct Place {
    /// The number of the definition that contains it; the root's is 0.
    definition: usize,
    /// Whether the root and the definitions have URIs, which references then use.
    identified: bool,
    /// Whether it applies to a part of the value that its definition applies to.
    inside: bool,
    depth: usize,
}

impl Place {
    /// The position of a schema for the same value.
    fn beside(self) -> Self {
        Self {
            depth: self.depth - 1,
            ..self
        }
    }

    /// The position of a schema for a part of the value.
    fn below(self) -> Self {
        Self {
            inside: true,
            ..self.beside()
        }
    }
}

/// Returns a schema of this dialect, occasionally an invalid one.
pub(crate) fn schema(random: &mut Random, dialect: Dialect) -> Value {
    let identified = random.once_in(4);
    let root = Place {
        definition: 0,
        identified,
        inside: false,
        depth: 3,
    };
    let mut whole = match object(random, dialect, root) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let defined = (1..=DEFINITIONS).map(|definition| {
        let place = Place {
            definition,
            identified,
            inside: false,
            depth: 2,
        };
        let mut schema = object(random, dialect, place);
        if dialect == Dialect::Draft7 {
            wrap_reference(&mut schema);
        }
        if identified {
            schema["$id"] = format!("d{definition}.json").into();
        }
        match dialect {
            Dialect::Draft202012 => schema["$anchor"] = format!("n{definition}").into(),
            Dialect::Draft7 if identified => {}
            Dialect::Draft7 => schema["$id"] = format!("#n{definition}").into(),
        }
        if dialect == Dialect::Draft202012 && (identified || definition == DEFINITIONS) {
            schema["$dynamicAnchor"] = "node".into();
        }
        (format!("d{definition}"), schema)
    });
    let defined: Map<String, Value> = defined.collect();
    if refers(&Value::Object(whole.clone())) || refers(&Value::Object(defined.clone())) {
        whole.insert(dialect.definitions().into(), defined.into());
    }
    let mut whole = Value::Object(whole);
    if dialect == Dialect::Draft7 {
        wrap_reference(&mut whole);
    }
    whole["$schema"] = dialect.uri().into();
    if identified {
        whole["$id"] = "https://schemas.example/root.json".into();
        if dialect == Dialect::Draft202012 {
            whole["$dynamicAnchor"] = "node".into();
        }
    }
    if random.once_in(10) {
        spoil(random, &mut whole, true);
    }
    whole
}

/// Moves a reference into a schema of its own: in the older dialects its siblings are ignored, and these would be the
/// definitions and names that other references point to.
fn wrap_reference(schema: &mut Value) {
    if let Value::Object(members) = schema
        && let Some(reference) = members.shift_remove("$ref")
    {
        members.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name == "$ref" || name == "$dynamicRef" || refers(value)),
        Value::Array(elements) => elements.iter().any(refers),
        _ => false,
    }
}

/// Replaces the value of a keyword with any value.
fn spoil(random: &mut Random, schema: &mut Value, is_root: bool) {
    let Value::Object(members) = schema else {
        return;
    };
    let names: Vec<String> = members
        .keys()
        .filter(|name| {
            !matches!(
                name.as_str(),
                "$schema"
                    | "$ref"
                    | "$dynamicRef"
                    | "$id"
                    | "$anchor"
                    | "$dynamicAnchor"
                    | "$defs"
                    | "definitions"
            )
        })
        .cloned()
        .collect();
    if names.is_empty() {
        return;
    }
    let name = &names[random.below(names.len())];
    let value = &mut members[name.as_str()];
    if value.is_object() && (!is_root || random.once_in(2)) {
        spoil(random, value, false);
    } else {
        *value = values::value(random, 2);
    }
}

fn subschema(random: &mut Random, dialect: Dialect, place: Place) -> Value {
    match random.below(12) {
        0 => json!(true),
        1 if random.once_in(2) => json!(false),
        _ => object(random, dialect, place),
    }
}

fn object(random: &mut Random, dialect: Dialect, place: Place) -> Value {
    let mut members = Map::new();
    for _ in 0..1 + random.below(4) {
        keyword(random, dialect, place, &mut members);
    }
    members.into()
}

fn keyword(random: &mut Random, dialect: Dialect, place: Place, to: &mut Map<String, Value>) {
    let is_current = dialect == Dialect::Draft202012;
    let (name, value) = match random.below(if place.depth == 0 { 20 } else { 43 }) {
        0..=2 => ("type", types(random)),
        3 => (
            "enum",
            (0..1 + random.below(3))
                .map(|_| values::value(random, 2))
                .collect(),
        ),
        4 => ("const", values::value(random, 2)),
        5 => (
            random.pick(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
            values::number(random),
        ),
        6 => {
            let divisors = [
                "1",
                "2",
                "0.5",
                "3",
                "0.1",
                "1.5",
                "1e-7",
                "4294967296",
                "1e20",
                "0.01",
            ];
            let divisor = random.pick(&divisors);
            (
                "multipleOf",
                serde_json::from_str(divisor).unwrap_or_default(),
            )
        }
        7 => (random.pick(&["minLength", "maxLength"]), count(random)),
        8 | 9 => ("pattern", pattern(random).into()),
        10 => (random.pick(&["minItems", "maxItems"]), count(random)),
        11 => ("uniqueItems", json!(!random.once_in(4))),
        12 => (
            random.pick(&["minProperties", "maxProperties"]),
            count(random),
        ),
        13 | 14 => ("required", names(random)),
        15 if is_current => (
            "dependentRequired",
            json!({ values::name(random): names(random) }),
        ),
        15 => (
            "dependencies",
            json!({ values::name(random): names(random) }),
        ),
        16 => ("format", random.pick(FORMATS).into()),
        17 | 18 => match reference(random, dialect, place) {
            Some(reference) => ("$ref", reference.into()),
            None => ("title", "no reference".into()),
        },
        19 if is_current && place.inside && random.once_in(2) => ("$dynamicRef", "#node".into()),
        19 => ("description", values::text(random)),
        20 | 21 if is_current && random.once_in(2) => {
            ("prefixItems", schemas(random, dialect, place.below()))
        }
        20 | 21 if !is_current && random.once_in(2) => {
            ("items", schemas(random, dialect, place.below()))
        }
        20 | 21 => ("items", subschema(random, dialect, place.below())),
        22 if is_current => ("prefixItems", schemas(random, dialect, place.below())),
        22 => ("additionalItems", subschema(random, dialect, place.below())),
        23 | 24 => {
            if is_current && random.once_in(2) {
                to.insert(
                    random.pick(&["minContains", "maxContains"]).to_owned(),
                    count(random),
                );
            }
            ("contains", subschema(random, dialect, place.below()))
        }
        25..=28 => ("properties", named(random, dialect, place.below())),
        29 => {
            let mut by_pattern = Map::new();
            by_pattern.insert(pattern(random), subschema(random, dialect, place.below()));
            ("patternProperties", by_pattern.into())
        }
        30 | 31 => (
            "additionalProperties",
            subschema(random, dialect, place.below()),
        ),
        32 => ("propertyNames", subschema(random, dialect, place.below())),
        33 if is_current => ("dependentSchemas", named(random, dialect, place.beside())),
        33 => ("dependencies", named(random, dialect, place.beside())),
        34..=36 => (
            random.pick(&["allOf", "anyOf", "oneOf"]),
            schemas(random, dialect, place.beside()),
        ),
        37 => ("not", subschema(random, dialect, place.beside())),
        38 | 39 => {
            for branch in ["then", "else"] {
                if !random.once_in(3) {
                    to.insert(branch.into(), subschema(random, dialect, place.beside()));
                }
            }
            ("if", subschema(random, dialect, place.beside()))
        }
        40 if is_current => (
            "unevaluatedItems",
            subschema(random, dialect, place.below()),
        ),
        42 if is_current => (
            "unevaluatedProperties",
            subschema(random, dialect, place.below()),
        ),
        // Keywords of the other dialect are ignored.
        40 => (
            random.pick(&[
                "prefixItems",
                "dependentSchemas",
                "unevaluatedProperties",
                "minContains",
                "$anchor",
            ]),
            values::value(random, 2),
        ),
        41 if is_current => ("additionalItems", values::value(random, 1)),
        _ => ("default", values::value(random, 1)),
    };
    to.insert(name.to_owned(), value);
}

fn types(random: &mut Random) -> Value {
    if random.once_in(3) {
        let first = random.below(TYPES.len());
        let second = (first + 1 + random.below(TYPES.len() - 1)) % TYPES.len();
        return json!([TYPES[first], TYPES[second]]);
    }
    random.pick(TYPES).into()
}

fn count(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!(2.0),
        1 => json!(9_223_372_036_854_775_807_u64),
        other => json!(other % 5),
    }
}

fn names(random: &mut Random) -> Value {
    let mut all: Vec<String> = (0..random.below(4)).map(|_| values::name(random)).collect();
    all.sort();
    all.dedup();
    all.into()
}

fn named(random: &mut Random, dialect: Dialect, place: Place) -> Value {
    let mut schemas = Map::new();
    for _ in 0..1 + random.below(3) {
        schemas.insert(values::name(random), subschema(random, dialect, place));
    }
    schemas.into()
}

fn schemas(random: &mut Random, dialect: Dialect, place: Place) -> Value {
    (0..1 + random.below(3))
        .map(|_| subschema(random, dialect, place))
        .collect()
}

/// Returns a reference that forms no cycle: to a later definition, or from within the value to any.
fn reference(random: &mut Random, dialect: Dialect, place: Place) -> Option<String> {
    if place.inside && random.once_in(4) {
        return Some("#".to_owned());
    }
    let first = if place.inside {
        1
    } else {
        place.definition + 1
    };
    let target = first + random.below(DEFINITIONS);
    if target > DEFINITIONS {
        return None;
    }
    let defined = format!("#/{}/d{target}", dialect.definitions());
    Some(match (place.identified, random.below(4)) {
        (false, 0) => format!("#n{target}"),
        (false, _) => defined,
        (true, 0) => format!("root.json{defined}"),
        (true, 1) => format!("https://schemas.example/d{target}.json"),
        (true, 2) if dialect == Dialect::Draft202012 => format!("/d{target}.json#n{target}"),
        (true, _) => format!("d{target}.json"),
    })
}

fn pattern(random: &mut Random) -> String {
    let mut source = String::new();
    if random.once_in(3) {
        source.push('^');
    }
    for _ in 0..1 + random.below(3) {
        let part = random.pick(PARTS);
        source.push_str(part);
        if !part.starts_with("(?") || part.starts_with("(?:") {
            source
                .push_str(random.pick(&["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"]));
        }
        if random.once_in(8) {
            source.push('|');
        }
    }
    if random.once_in(3) {
        source.push('$');
    }
    source
}
