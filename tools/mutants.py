"""Makes mutants of C++ text, each with one place changed. tools/mutate.py builds and tests them.

It knows C++ as clang-format writes it: a comparison has spaces around it and a template's brackets have none, so no parser is needed. What it
takes for a place wrongly does not compile, and such mutants are not counted. Comments, texts, the preprocessor's lines and assertions
(preconditions, which no test may break) are left alone.
"""
import dataclasses
import hashlib
import re

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<end>[^(\s]*)\(.*?\)(?P=end)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<number>(?:0[xX][0-9a-fA-F']+|(?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?)[A-Za-z_]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><=>|->|::|\+\+|--|&&|\|\||[<>=!+\-*/%]=|<<|>>|.)
""", re.VERBOSE | re.DOTALL)

# For operators with spaces on both sides.
BINARY = {"<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
          "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "&&": ["||"], "||": ["&&"],
          "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="]}
UNARY = {"!": "", "++": "--", "--": "++"}
NAMES = {"true": "false", "false": "true"}
FUNCTIONS = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element", "ceil": "floor", "floor": "ceil",
             "lower_bound": "upper_bound", "upper_bound": "lower_bound", "any_of": "all_of", "all_of": "any_of"}  # of std
MEMBERS = {"front": "back", "back": "front"}

# What begins a statement that cannot be dropped, or that only says what something is.
NO_STATEMENT = set("""if for while do switch case default return using namespace struct class enum union template typedef constexpr static const
                      auto public private protected goto try catch friend explicit extern inline else virtual static_assert assert""".split())
BARE = {"throw", "continue", "break"}
ASSERTIONS = {"assert", "static_assert"}
LARGE = 1000  # a constant as large as this is doubled: one more would hardly be another


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self):
        return self.start + len(self.text)


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str    # as the caller names it
    line: int    # of the place, from 1
    start: int   # the place
    end: int
    text: str    # what stands there instead
    before: str  # the whole lines of the place, their spaces as one each
    after: str

    @property
    def identity(self):
        """What names a mutant while lines are added above it."""
        return self.file, self.before, self.after

    def applied(self, source):
        return source[:self.start] + self.text + source[self.end:]


def tokens_of(source):
    """The tokens that a compiler sees, without spaces, comments and the preprocessor's lines."""
    found = (Token(match.lastgroup if match.lastgroup != "end" else "raw", match[0], match.start()) for match in TOKEN.finditer(source))
    return [token for token in found if token.kind not in ("space", "comment", "directive")]


def brackets_of(tokens):
    """Returns the index of the bracket that closes each that opens."""
    closes, open_ones = {}, []
    for i, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in ("(", "[", "{"):
            open_ones.append(i)
        elif token.text in (")", "]", "}") and open_ones:
            closes[open_ones.pop()] = i
    return closes


def holders_of(tokens, closes):
    """Returns for each token the bracket in which it stands, or nothing."""
    holders, inside = [], []
    for i in range(len(tokens)):
        while inside and i >= closes[inside[-1]]:
            inside.pop()
        holders.append(tokens[inside[-1]].text if inside else "")
        if i in closes:
            inside.append(i)
    return holders


def is_spaced(source, token):
    return source[token.start - 1:token.start].isspace() and source[token.end:token.end + 1].isspace()


def other_numbers(text):
    number = re.match(r"(0[xX][0-9a-fA-F']+|[\d'.]+(?:[eE][+-]?\d+)?)(.*)", text)
    digits, suffix = number[1].replace("'", ""), number[2]
    if digits.lower().startswith("0x"):
        return []
    if not digits.isdigit():
        return [f"({text} + 1)" if float(digits) == 0 else f"(2 * {text})"]
    value = int(digits)
    if value >= LARGE:
        return [f"(2 * {text})"]
    return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value > 0 else [])


def token_changes(source, tokens, i):
    """What may stand for the token."""
    token = tokens[i]
    before = tokens[i - 1].text if i > 0 else ""
    if token.kind == "number":
        return other_numbers(token.text)
    if token.kind == "name":
        if token.text in NAMES:
            return [NAMES[token.text]]
        if before == "::" and token.text in FUNCTIONS and tokens[i - 2].text == "std":
            return [FUNCTIONS[token.text]]
        if before == "." and token.text in MEMBERS and i + 1 < len(tokens) and tokens[i + 1].text == "(":
            return [MEMBERS[token.text]]
    if token.kind == "op" and before != "operator":
        if token.text in UNARY and not source[token.end:token.end + 1].isspace():
            return [UNARY[token.text]]
        if token.text in BINARY and is_spaced(source, token):
            return BINARY[token.text]
    return []


def declares(source, tokens, i):
    """True if the statement that begins here is a type and a name."""
    if tokens[i].kind != "name":
        return False
    i += 1
    while i < len(tokens):
        token = tokens[i]
        if token.text == "::":
            i += 2
        elif token.text == "<" and not source[token.start - 1].isspace():
            depth = 0
            while i < len(tokens):
                depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[i].text, 0)
                i += 1
                if depth <= 0:
                    break
        elif token.text in ("*", "&", "&&") and not source[token.start - 1].isspace():
            i += 1
        else:
            return token.kind == "name"
    return False


def statement_end(tokens, closes, i):
    """The index of the semicolon that ends the expression that begins here, or None."""
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "op":
            if token.text == ";":
                return i
            if token.text in (")", "]", "}"):
                return None
            if token.text == "{" and (tokens[i - 1].text in (")", "const", "noexcept", "override") or tokens[i - 1].kind == "op"):
                return None
            if token.text in ("(", "[", "{"):
                i = closes.get(i, len(tokens))
        i += 1
    return None


def statements(source, tokens, closes):
    """Yields start and end of what may be left out: assignments, calls, throws, jumps."""
    heads = {closes[i + 1] for i, token in enumerate(tokens)
             if token.kind == "name" and token.text in ("if", "for", "while") and closes.get(i + 1)}
    holders = holders_of(tokens, closes)
    for i, token in enumerate(tokens):
        if i == 0 or holders[i] in ("(", "[") or not (tokens[i - 1].text in (";", "{", "}", "else") or i - 1 in heads):
            continue
        if tokens[i - 1].text == "}" and "\n" not in source[tokens[i - 1].end:token.start]:
            continue
        if token.text in NO_STATEMENT and not (token.text == "return" and tokens[i + 1].text == ";"):
            continue
        if token.kind not in ("name", "op") or token.text in (".", "}", "{", ";", "[", "#", "~"):
            continue
        if token.text not in BARE and token.text != "return" and declares(source, tokens, i):
            continue
        end = statement_end(tokens, closes, i)
        if end is not None:
            yield token.start, tokens[end].start


def conditions(tokens, closes):
    """Yields start and end of the condition of each `if`."""
    for i, token in enumerate(tokens):
        if token.kind != "name" or token.text != "if" or i + 1 not in closes:
            continue
        first, last = i + 2, closes[i + 1]
        k = first
        while k < last:
            if tokens[k].text == ";":
                first = k + 1
            k = closes.get(k, k) + 1
        if first < last and tokens[first].text not in ("const", "auto"):
            yield tokens[first].start, tokens[last - 1].end


def make_mutants(file, source):
    """All mutants of a file, in the order of their places."""
    tokens = tokens_of(source)
    closes = brackets_of(tokens)
    left_out = [(token.start, tokens[closes[i + 1]].end) for i, token in enumerate(tokens)
                if token.text in ASSERTIONS and i + 1 in closes]
    places = []
    for i, token in enumerate(tokens):
        places += [(token.start, token.end, text) for text in token_changes(source, tokens, i)]
    places += [(start, end, "") for start, end in statements(source, tokens, closes)]
    places += [(start, end, text) for start, end in conditions(tokens, closes) for text in ("true", "false")]
    mutants = {}
    for start, end, text in sorted(places):
        if any(begin <= start < finish for begin, finish in left_out) or source[start:end] == text:
            continue
        first, last = source.rfind("\n", 0, start) + 1, source.find("\n", end)
        last = len(source) if last < 0 else last
        before = " ".join(source[first:last].split())
        after = " ".join((source[first:start] + text + source[end:last]).split())
        mutant = Mutant(file, source.count("\n", 0, start) + 1, start, end, text, before, after)
        mutants.setdefault((mutant.line, mutant.identity), mutant)
    return list(mutants.values())


def drawn(mutants, seed):
    """The mutants in the order of the seed. A mutant's place in it does not depend on what else the files hold."""
    def rank(mutant):
        return hashlib.sha256("\0".join([str(seed), *mutant.identity]).encode()).hexdigest(), mutant.line
    return sorted(mutants, key=rank)


class ListError(Exception):
    """A list of equivalent mutants that cannot be read."""


def read_equivalent(text, name):
    """Reads the list of mutants that no test can tell from the original, with the reasons:

        # remarks
        sim/ledger/bill.cpp
        - the lines of the place
        + the lines of the mutant
        = why nothing changes

    Returns the reasons by identity.
    """
    reasons, file, before, after = {}, None, None, None
    for number, line in enumerate(text.splitlines(), 1):
        mark, rest = line[:1], " ".join(line[2:].split())
        if not line.strip() or mark == "#":
            continue
        if mark == "-" and file and before is None:
            before = rest
        elif mark == "+" and before is not None and after is None:
            after = rest
        elif mark == "=" and after is not None and rest:
            reasons[file, before, after] = rest
            before = after = None
        elif mark not in "-+= " and before is None:
            file = line.strip()
        else:
            expected = ("a file, then \"- \"" if file is None else
                        "\"- \" or a file" if before is None else "\"+ \"" if after is None else "\"= \" and a reason")
            raise ListError(f"{name}:{number}: found \"{line}\", expected {expected}")
    if before is not None:
        raise ListError(f"{name}: the last mutant has no reason (\"= \")")
    return reasons
