// Compares expectations of `expectations.json` with a client's results; the same rules as ../python/matching.py.

const RULES = {
  $absent: (_operand, seen) => seen === undefined || seen === null,
  $falsy: (_operand, seen) => !seen,
  $string: (_operand, seen) => typeof seen === 'string' && seen !== '',
  $contains: (operand, seen) => typeof seen === 'string' && seen.includes(operand),
  $without: (operand, seen) => typeof seen === 'string' && !seen.includes(operand),
  $json: (operand, seen) => typeof seen === 'string' && same(operand, JSON.parse(seen)),
  $sorted: (operand, seen) => Array.isArray(seen) && same(operand, [...seen].sort()),
};

/** Whether an entry with optional `since` and `before` bounds applies to this revision. */
export function applies(entry, revision) {
  return revision >= (entry.since ?? '') && revision < (entry.before ?? '9999');
}

/** Whether two JSON values are equal, regardless of the order of members. */
export function same(left, right) {
  if (Array.isArray(left) || Array.isArray(right)) {
    return Array.isArray(left) && Array.isArray(right) && left.length === right.length
      && left.every((item, index) => same(item, right[index]));
  }
  if (left && right && typeof left === 'object' && typeof right === 'object') {
    const keys = Object.keys(left);
    return keys.length === Object.keys(right).length && keys.every((key) => key in right && same(left[key], right[key]));
  }
  return left === right;
}

/** Returns every path where `seen` differs from the expectation; empty if it matches. */
export function differences(expected, seen, path = '') {
  const wrong = (what) => [`${path || 'value'}: expected ${what}, saw ${JSON.stringify(seen)}`];
  if (Array.isArray(expected)) {
    if (!Array.isArray(seen) || seen.length !== expected.length) return wrong(`${expected.length} items`);
    return expected.flatMap((item, index) => differences(item, seen[index], `${path}[${index}]`));
  }
  if (expected && typeof expected === 'object') {
    const [rule, ...others] = Object.keys(expected);
    if (others.length === 0 && rule in RULES) {
      return RULES[rule](expected[rule], seen) ? [] : wrong(`${rule} ${JSON.stringify(expected[rule])}`);
    }
    if (!seen || typeof seen !== 'object' || Array.isArray(seen)) return wrong('an object');
    return Object.entries(expected).flatMap(([key, value]) => differences(value, seen[key], path ? `${path}.${key}` : key));
  }
  return expected === seen ? [] : wrong(JSON.stringify(expected));
}
