// Generates pairs of a pattern and a text from a seed, with the result of this Node's RegExp: one JSON line each.
//
//     node cases.mjs [COUNT] [SEED]
//
// Patterns are composed of the whole syntax. Half of the texts are generated along with their pattern, so that many
// match, and then changed in some places. Most patterns are compiled with the flag `u`. A pattern that needs the flag's
// absence (ECMA-262, Annex B) is compiled without it, and has neither texts nor escapes where that makes another
// difference.
//
// Some patterns have flags: at the start, or in a group around them. RegExp need not support that syntax, because it
// gets these flags as its own. Without `u` it folds letters differently, so `i` is not used there.

const [count = "4000", seed = "1"] = process.argv.slice(2);

let state = Number(seed) >>> 0;

/** Returns a number from 0 to below `bound`: the same sequence for the same seed (mulberry32). */
function below(bound) {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
}

const one = (list) => list[below(list.length)];
const chance = (percent) => below(100) < percent;

const COMMON = ["a", "b", "a", "b", "c", "1", "_", "-", " "];
const PLAIN = [...COMMON, "A", "Z", "z", "0", "9", ".", "/", "\n", "\r", "\t", "\u00a0", "é", "ß", "\u2028", "\ufeff", "~", "@"];
const WIDE = [...PLAIN, "Ω", "я", "漢", "٣", "😀", "\u{1d7d8}", "\u0301", "ǅ", "€", "ª", "Ⅷ"];
const CASED = [...WIDE, "k", "K", "\u212a", "s", "S", "ſ", "A", "B", "É", "ẞ", "Σ", "σ", "ς", "ǆ", "Ǆ", "İ", "ı", "i", "I", "ω", "Я", "µ", "μ",
  "\u0345", "ι", "\u1f88", "\u1f80", "\u13a0", "\uab70", "\u{10400}", "\u{10428}", "ΐ", "\u1fd3", "ﬅ", "ﬆ"];

/** Elements of patterns and texts: one set with the flag `u`, another without it. */
const ways = {
  u: {
    flags: "u",
    characters: WIDE,
    escapes: ["\\/", "\\.", "\\n", "\\t", "\\cJ", "\\x61", "\\u0062", "\\u{61}", "\\u{1F600}", "\\ud83d\\ude00", "\\0", "\\*", "\\]"],
    inClass: ["\\-", "\\b", "\\]", "\\^", "\\x61", "\\u{1f5ff}", "\\n"],
    properties: ["L", "Lu", "Ll", "Letter", "Nd", "N", "P", "Pd", "Sc", "S", "M", "Zs", "Alphabetic", "White_Space", "gc=Lo", "ASCII", "Any",
      "Lowercase", "Upper", "General_Category=Letter_Number", "ASCII_Hex_Digit", "LC", "C", "Script=Latin", "sc=Grek",
      "Emoji", "EPres", "Emoji_Component", "Extended_Pictographic",
      "Script=Han", "scx=Cyrl", "Script_Extensions=Inherited", "sc=Common"],
  },
  plain: {
    flags: "",
    characters: PLAIN,
    escapes: ["\\-", "\\@", "\\_", "\\~", "\\ ", "\\:", "]", "{", "}", "a{,2}", "\\x61", "\\u0062", "\\cJ", "\\é"],
    inClass: ["\\-", "\\b", "\\_", "\\@", "{", "\\w-", "-\\d", "\\s-a", "a-\\d"],
    properties: [],
  },
};
ways.cased = { ...ways.u, characters: CASED };

/** Returns flags, and how they are written around a pattern. */
function flagged(way) {
  const flags = [...(way === ways.plain ? "ms" : "ims")].filter((flag) => (way === ways.cased && flag === "i") || chance(35)).join("");
  if (flags === "") return { flags, written: (source) => source };
  const without = [..."ims"].filter((flag) => !flags.includes(flag)).join("");
  const form = one(["front", "front", "front", "group", "both", "undone"]);
  if (form === "front") return { flags, written: (source) => `(?${flags}${chance(10) ? "u" : ""})${source}` };
  if (form === "group") return { flags, written: (source) => `(?${flags}:${source})` };
  if (form === "both" && without !== "") return { flags, written: (source) => `(?${without})(?${flags}-${without}:${source})` };
  if (form === "both") return { flags, written: (source) => `(?${flags[0]})(?${flags.slice(1)}:${source})` };
  return { flags: "", written: (source) => `(?${flags})(?-${flags}:${source})` };
}

/** Changes the case of some letters. */
const recased = (text) => [...text].map((character) => one([character, character.toUpperCase(), character.toLowerCase()])).join("");

/** Escapes a character so that it matches itself. */
const written = (character) => (/[\^$\\.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character);

/** Generates one pattern. Methods for parts of it return `{source, sample}`: the source, and a text that matches it. */
class Maker {
  constructor(way) {
    this.way = way;
    this.names = 0;
    // Number of quantifiers around the current part: few, so that RegExp, which backtracks, finishes quickly.
    this.repeated = 0;
    this.captures = chance(25);
    this.looks = chance(40);
  }

  choice(depth) {
    const branches = Array.from({ length: chance(25) ? 2 + below(2) : 1 }, () => this.sequence(depth));
    return { source: branches.map((branch) => branch.source).join("|"), sample: () => one(branches).sample() };
  }

  sequence(depth) {
    const terms = Array.from({ length: chance(5) ? 0 : 1 + below(depth > 1 ? 4 : 3) }, () => this.term(depth));
    return { source: terms.map((term) => term.source).join(""), sample: () => terms.map((term) => term.sample()).join("") };
  }

  term(depth) {
    if (chance(12)) return { source: one(["^", "$", "\\b", "\\B", "^", "$"]), sample: () => "" };
    if (depth > 0 && this.looks && chance(20)) return this.look(depth);
    const grouped = depth > 0 && chance(35);
    const repeats = chance(40);
    this.repeated += repeats ? 1 : 0;
    const inner = grouped ? this.group(depth) : this.character();
    this.repeated -= repeats ? 1 : 0;
    if (!repeats) return inner;
    const bounds = this.repeated > 0 ? 2 : grouped ? 3 : 9;
    const few = below(bounds);
    const most = few + below(bounds);
    const bounded = [
      ["?", () => below(2)],
      [`{${few}}`, () => few],
      [`{${few},${most}}`, () => few + below(most - few + 1)],
    ];
    const unbounded = [
      ["*", () => below(3)],
      ["+", () => 1 + below(3)],
      [`{${few},}`, () => few + below(2)],
    ];
    const fewWays = this.repeated > (grouped ? 0 : 1);
    const [quantifier, rounds] = one(fewWays ? bounded : [...bounded, ...unbounded]);
    const sample = () => Array.from({ length: rounds() }, () => inner.sample()).join("");
    return { source: inner.source + quantifier + (chance(20) ? "?" : ""), sample };
  }

  group(depth) {
    if (!this.captures || chance(40)) {
      const inner = this.choice(depth - 1);
      return { source: `(?:${inner.source})`, sample: inner.sample };
    }
    let open = "(";
    if (chance(30)) {
      this.names += 1;
      open = `(?<n${this.names}>`;
    }
    const inner = this.choice(depth - 1);
    return { source: `${open}${inner.source})`, sample: inner.sample };
  }

  look(depth) {
    const inner = this.choice(depth - 1);
    const kind = one(["?=", "?!", "?<=", "?<!"]);
    return { source: `(${kind}${inner.source})`, sample: () => (kind === "?=" && chance(50) ? inner.sample() : "") };
  }

  character() {
    const { way } = this;
    const any = () => one(chance(70) ? COMMON : way.characters);
    switch (below(10)) {
      case 0:
        return { source: ".", sample: any };
      case 1:
        return { source: one(["\\d", "\\w", "\\s", "\\D", "\\W", "\\S"]), sample: any };
      case 2:
        return { source: one(way.escapes), sample: any };
      case 3:
        if (way.properties.length === 0) break;
        return { source: `\\${one(["p", "p", "P"])}{${one(way.properties)}}`, sample: any };
      case 4:
      case 5:
      case 6:
        return this.class(any);
    }
    const character = any();
    return { source: written(character), sample: () => character };
  }

  class(any) {
    const members = Array.from({ length: below(4) }, () => {
      if (chance(30)) {
        const [first, last] = [one(this.way.characters), one(this.way.characters)].map((text) => text.codePointAt(0)).sort((a, b) => a - b);
        const bound = (code) => (code < 0x80 && !/\w/.test(String.fromCodePoint(code)) ? `\\x${code.toString(16).padStart(2, "0")}` : String.fromCodePoint(code));
        return `${bound(first)}-${bound(last)}`;
      }
      if (chance(25)) return one(["\\d", "\\w", "\\s", "\\D", "\\W", "\\S"]);
      if (chance(25)) return one(this.way.inClass);
      if (this.way.properties.length > 0 && chance(15)) return `\\${one(["p", "P"])}{${one(this.way.properties)}}`;
      const character = any();
      return /[\^\\[\]-]/.test(character) ? `\\${character}` : character;
    });
    return { source: `[${chance(25) ? "^" : ""}${members.join("")}]`, sample: any };
  }
}

/** Removes, duplicates or replaces some characters of a text. */
function changed(text, characters) {
  return [...text].flatMap((character) => {
    if (!chance(8)) return [character];
    return one([[], [character, character], [one(characters)]]);
  }).join("");
}

const anyText = (characters, length) => Array.from({ length: below(length) }, () => one(chance(75) ? COMMON : characters)).join("");

/**
 * Whether an expression matches anywhere. Tried at each character, because with the flag `u` V8's own search also looks
 * between the halves of a surrogate pair, where ECMA-262 does not (RegExpBuiltinExec, AdvanceStringIndex).
 */
function isFound(source, flags, text) {
  const expression = new RegExp(source, `${flags}y`);
  for (let at = 0; at <= text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) {
    expression.lastIndex = at;
    if (expression.test(text)) return true;
  }
  return false;
}

for (let made = 0; made < Number(count);) {
  const way = one([ways.u, ways.u, ways.u, ways.cased, ways.plain]);
  const pattern = new Maker(way).choice(3);
  const chosen = chance(way === ways.cased ? 100 : 20) ? flagged(way) : { flags: "", written: (source) => source };
  const flags = way.flags + chosen.flags;
  const source = chosen.written(pattern.source);
  try {
    new RegExp(pattern.source, way.flags);
  } catch {
    continue;
  }
  for (let number = 0; number < 4 && made < Number(count); number += 1) {
    const around = () => (chance(50) ? "" : anyText(way.characters, 4));
    const text = chance(60) ? around() + changed(pattern.sample(), way.characters) + around() : anyText(way.characters, 12);
    const cased = way === ways.cased ? recased(text) : text;
    const limited = [...cased].slice(0, 16).join("");
    made += 1;
    process.stdout.write(`${JSON.stringify({ pattern: source, text: limited, found: isFound(pattern.source, flags, limited) })}\n`);
  }
}
