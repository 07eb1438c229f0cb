//! The supported Unicode properties of `\p{…}` (ECMA-262, "UnicodeMatchProperty").

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

use super::emoji::EmojiProperty;

/// A property that a character has or lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    /// One of these general categories: one bit each, by [`bit`].
    Category(u32),
    Ascii,
    AsciiHexDigit,
    Alphabetic,
    Lowercase,
    Uppercase,
    WhiteSpace,
    Emoji(EmojiProperty),
    /// Characters of this script.
    Script(Script),
    /// Characters that this script uses, including shared ones.
    ScriptExtensions(Script),
}

const fn bit(category: GeneralCategory) -> u32 {
    1 << category as u32
}

/// The categories, with their short and long names. All but the first of a group have the same first letter.
const CATEGORIES: [(GeneralCategory, &str, &str); 30] = [
    (GeneralCategory::UppercaseLetter, "Lu", "Uppercase_Letter"),
    (GeneralCategory::LowercaseLetter, "Ll", "Lowercase_Letter"),
    (GeneralCategory::TitlecaseLetter, "Lt", "Titlecase_Letter"),
    (GeneralCategory::ModifierLetter, "Lm", "Modifier_Letter"),
    (GeneralCategory::OtherLetter, "Lo", "Other_Letter"),
    (GeneralCategory::NonspacingMark, "Mn", "Nonspacing_Mark"),
    (GeneralCategory::SpacingMark, "Mc", "Spacing_Mark"),
    (GeneralCategory::EnclosingMark, "Me", "Enclosing_Mark"),
    (GeneralCategory::DecimalNumber, "Nd", "Decimal_Number"),
    (GeneralCategory::LetterNumber, "Nl", "Letter_Number"),
    (GeneralCategory::OtherNumber, "No", "Other_Number"),
    (
        GeneralCategory::ConnectorPunctuation,
        "Pc",
        "Connector_Punctuation",
    ),
    (GeneralCategory::DashPunctuation, "Pd", "Dash_Punctuation"),
    (GeneralCategory::OpenPunctuation, "Ps", "Open_Punctuation"),
    (GeneralCategory::ClosePunctuation, "Pe", "Close_Punctuation"),
    (
        GeneralCategory::InitialPunctuation,
        "Pi",
        "Initial_Punctuation",
    ),
    (GeneralCategory::FinalPunctuation, "Pf", "Final_Punctuation"),
    (GeneralCategory::OtherPunctuation, "Po", "Other_Punctuation"),
    (GeneralCategory::MathSymbol, "Sm", "Math_Symbol"),
    (GeneralCategory::CurrencySymbol, "Sc", "Currency_Symbol"),
    (GeneralCategory::ModifierSymbol, "Sk", "Modifier_Symbol"),
    (GeneralCategory::OtherSymbol, "So", "Other_Symbol"),
    (GeneralCategory::SpaceSeparator, "Zs", "Space_Separator"),
    (GeneralCategory::LineSeparator, "Zl", "Line_Separator"),
    (
        GeneralCategory::ParagraphSeparator,
        "Zp",
        "Paragraph_Separator",
    ),
    (GeneralCategory::Control, "Cc", "Control"),
    (GeneralCategory::Format, "Cf", "Format"),
    (GeneralCategory::Surrogate, "Cs", "Surrogate"),
    (GeneralCategory::PrivateUse, "Co", "Private_Use"),
    (GeneralCategory::Unassigned, "Cn", "Unassigned"),
];

/// Other names of categories or groups, with their short names.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("Letter", "L"),
    ("Mark", "M"),
    ("Combining_Mark", "M"),
    ("Number", "N"),
    ("Punctuation", "P"),
    ("punct", "P"),
    ("Symbol", "S"),
    ("Separator", "Z"),
    ("Other", "C"),
    ("Cased_Letter", "LC"),
    ("digit", "Nd"),
    ("cntrl", "Cc"),
];

impl Property {
    /// Returns the property with the name between the braces of `\p{…}`.
    pub(super) fn from_name(text: &str) -> Option<Self> {
        if let Some((name, value)) = text.split_once('=') {
            let script =
                || Script::from_full_name(value).or_else(|| Script::from_short_name(value));
            return match name {
                "General_Category" | "gc" => category(value),
                "Script" | "sc" => script().map(Self::Script),
                "Script_Extensions" | "scx" => script().map(Self::ScriptExtensions),
                _ => None,
            };
        }
        Some(match text {
            "Any" => Self::Category(u32::MAX),
            "Assigned" => Self::Category(!bit(GeneralCategory::Unassigned)),
            "ASCII" => Self::Ascii,
            "ASCII_Hex_Digit" | "AHex" => Self::AsciiHexDigit,
            "Alphabetic" | "Alpha" => Self::Alphabetic,
            "Lowercase" | "Lower" => Self::Lowercase,
            "Uppercase" | "Upper" => Self::Uppercase,
            "White_Space" | "space" => Self::WhiteSpace,
            _ => {
                let emoji = EmojiProperty::from_name(text).map(Self::Emoji);
                return emoji.or_else(|| category(text));
            }
        })
    }

    pub(super) fn holds(self, char: u32) -> bool {
        // Texts contain no surrogates.
        let Some(char) = char::from_u32(char) else {
            return false;
        };
        match self {
            Self::Category(categories) => categories & bit(char.general_category()) != 0,
            Self::Ascii => char.is_ascii(),
            Self::AsciiHexDigit => char.is_ascii_hexdigit(),
            Self::Alphabetic => char.is_alphabetic(),
            Self::Lowercase => char.is_lowercase(),
            Self::Uppercase => char.is_uppercase(),
            Self::WhiteSpace => char.is_whitespace(),
            Self::Emoji(property) => property.holds(char),
            Self::Script(script) => char.script() == script,
            Self::ScriptExtensions(script) => {
                let used = char.script_extension();
                // That crate counts common characters as part of every script; in ECMA-262 they are a separate script.
                if used.is_common() || used.is_inherited() {
                    script == char.script()
                } else {
                    !matches!(script, Script::Common | Script::Inherited)
                        && used.contains_script(script)
                }
            }
        }
    }
}

/// Returns the category, or the group of categories, with that name.
fn category(name: &str) -> Option<Property> {
    let name = OTHER_NAMES
        .iter()
        .find(|other| other.0 == name)
        .map_or(name, |other| other.1);
    let wanted = |short: &str, long: &str| match name {
        "LC" => matches!(short, "Lu" | "Ll" | "Lt"),
        "L" | "M" | "N" | "P" | "S" | "Z" | "C" => short.starts_with(name),
        _ => short == name || long == name,
    };
    let categories = CATEGORIES
        .iter()
        .filter(|(_, short, long)| wanted(short, long))
        .fold(0, |categories, &(category, ..)| categories | bit(category));
    (categories != 0).then_some(Property::Category(categories))
}
