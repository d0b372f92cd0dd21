#!/usr/bin/env python3
"""Makes a copy of the tree in which every decision of core/ has a switch (see switches.hpp).

    instrument.py SOURCE TARGET             writes the copy and TARGET/sites.tsv
    instrument.py SOURCE TARGET FOLDER...   writes the sources and headers of these folders alone, with
                                            a switch at each call that is a statement, and at no other
                                            place: for adapters, whose calls are events and waits

The sources stand in clang-format's form, which tells an operator from a bracket of a template, a
pointer or a reference: a binary operator has a space on both sides. What would not compile with a
switch is left alone: constant expressions, and the files in SKIPPED.
"""
import os
import re
import shutil
import subprocess
import sys

# Code that the compiler evaluates, or that no test may replace.
SKIPPED = ("core/adapters/cuda/", "core/adapters/nccl/", "core/adapters/mpi/")

# The sources are parts of unity sources, so this silences warnings about switches, and no others.
PREAMBLE = '#pragma GCC system_header\n#include "tests/mutation/switches.hpp"\n'

BINARY = {"<": "Less", ">": "Greater", "<=": "LessEqual", ">=": "GreaterEqual", "==": "Equal",
          "!=": "Unequal", "+": "Plus", "-": "Minus", "*": "Times", "/": "Divide", "%": "Modulo"}
VARIANTS = {"<": ["<=", ">="], ">": [">=", "<="], "<=": ["<", ">"], ">=": [">", "<"],
            "==": ["!="], "!=": ["=="], "+": ["-"], "-": ["+"], "*": ["+", "/"], "/": ["*"],
            "%": ["+", "/"]}
TOKEN = re.compile(
    r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?:.|\n)*?\*/'
    r"|[A-Za-z_]\w*|\d[\w'.]*|<=>|->\*|<<=|>>=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]="
    r"|\s+|.")
CONSTANT = re.compile(r"\b(constexpr|consteval|static_assert|requires|concept|template|case|enum|"
                      r"alignas|decltype|noexcept|sizeof|operator|default|#)")
NO_CALL = {"return", "throw", "if", "for", "while", "switch", "do", "else", "case", "break",
           "continue", "using", "delete", "new", "static_cast", "reinterpret_cast", "const_cast",
           "CHECK", "static_assert", "constexpr", "goto", "try", "catch", "sizeof", "co_return"}
# Statements whose change nobody could see: a CHECK is never false, and reserve() only saves time.
UNSEEN = re.compile(r"\s*(CHECK|[\w.>-]+(\.|->)reserve)\(")


def plain(text):
    """Returns the text with blanks in place of what hides the heads of functions: comments, heads of
    templates, and braces around initial values."""
    for hidden in (r"//[^\n]*", r"template <.*>\n", r"(?<=\w)\{[^{};]*\}"):
        text = re.sub(hidden, lambda found: " " * len(found.group()), text)
    return text


class File:
    """One source. With `calls_alone` only calls have switches, but all of them: also those behind
    if (...), those that a void function returns, and those whose result is thrown away."""

    def __init__(self, path, text, first, calls_alone=False):
        self.path, self.text, self.next, self.calls_alone = path, text, first, calls_alone
        self.tokens = TOKEN.findall(text)
        self.sites = []
        self.starts, at = [], 0
        for token in self.tokens:
            self.starts.append(at)
            at += len(token)
        self.plain = plain(text) if calls_alone else text
        self.around = self.braces()
        self.edits = []  # (offset, length, text)
        self.calls = []  # (first token, last token, place in edits) of statements that are a call

    def line(self, index):
        return self.text.count("\n", 0, self.starts[index]) + 1

    def site(self, index, kind, changes, source=None):
        number = self.next
        self.next += 1
        line = self.line(index)
        source = source or self.text.split("\n")[line - 1].strip()
        for variant, change in enumerate(changes):
            if change is None:
                continue
            self.sites.append((number, variant, self.path, line, kind, change, source))
        return number

    def edit(self, index, length, text):
        self.edits.append((self.starts[index], length, text))

    def statement(self, index):
        """Returns the text of the statement around a token, to see if it is a constant."""
        at = self.significant(index, -1)
        while at is not None and self.tokens[at] not in (";", "{"):
            if self.tokens[at] == "}":
                # A block that a name follows is a statement of its own; others are part of this one.
                if re.match(r"[A-Za-z_~\[(]", self.tokens[self.significant(at, 1)]):
                    break
                at = self.opened[at]
            at = self.significant(at, -1)
        begin = 0 if at is None else self.starts[at] + 1
        end = min(e for e in (self.text.find(c, self.starts[index]) for c in ";{") if e >= 0)
        return self.text[begin:end]

    def significant(self, index, step):
        index += step
        while 0 <= index < len(self.tokens) and (self.tokens[index].isspace() or
                                                 self.tokens[index].startswith(("//", "/*"))):
            index += step
        return index if 0 <= index < len(self.tokens) else None

    def close(self, index):
        """Returns the index of the bracket that closes the one at `index`."""
        pairs, depth = {"(": ")", "[": "]", "{": "}"}, []
        for at in range(index, len(self.tokens)):
            token = self.tokens[at]
            if token in pairs:
                depth.append(pairs[token])
            elif token in ")]}":
                if not depth or depth.pop() != token:
                    return None
                if not depth:
                    return at
        return None

    def instrument(self):
        for index, token in enumerate(self.tokens):
            if self.in_constant(index):
                continue
            if self.calls_alone:
                self.any_call(index)
            elif token in BINARY or token in ("&&", "||"):
                self.binary(index, token)
            elif token in ("if", "while"):
                self.condition(index)
            elif token == "return":
                self.literal(index)
            elif re.match(r"[A-Za-z_]\w*$", token):
                self.call(index)
        self.order()
        text = self.text
        for offset, length, new in sorted(self.edits, reverse=True):
            text = text[:offset] + new + text[offset + length:]
        return text

    def binary(self, index, token):
        before, after = self.tokens[index - 1], self.tokens[index + 1]
        statement = self.statement(index)
        if not before.isspace() or not after.isspace() or CONSTANT.search(statement):
            return
        if UNSEEN.match(statement):
            return
        if self.inside[index] is not None and self.tokens[self.inside[index]] == "[" and re.match(
                r"\s*(const )?[\w:]+ \w+\[", statement):
            return  # the length of an array
        if re.search(r"\w<[^<>();]*$", self.text[:self.starts[index]].rsplit("\n", 1)[-1]):
            return  # an argument of a template
        left = self.tokens[self.significant(index, -1)]
        if left in ("return", "(", ",", "=", "operator", "&&", "||", "?", ":", "{", ";", "case"):
            return
        if token in BINARY:
            number = self.site(index, token, self.variants(index, token))
            self.edit(index, len(token), f"{token} mutation::{BINARY[token]}({number}) {token}")
        elif token == "&&":
            number = self.site(index, token, ["false"])
            self.edit(index, 2, f"&& !mutation::on({number}, 0) &&")
        else:
            number = self.site(index, token, ["true"])
            self.edit(index, 2, f"|| mutation::on({number}, 0) ||")

    def variants(self, index, token):
        """In "a != b ? a < b : ..." the sides differ, so nobody could tell < from <=."""
        first = self.starts[index]
        before = self.text[self.text.rfind("\n", 0, first) + 1:first].rstrip()
        after = self.text[first + 1:self.text.find("\n", first)].strip()
        guard = re.search(r"(?P<a>[\w.()\[\]]+) != (?P<b>[\w.()\[\]]+?)\)? (?:\?|return) (?P=a)$", before)
        if token in "<>" and guard and re.match(re.escape(guard["b"]) + r"\)?(?: :|;)", after):
            return [None] + VARIANTS[token][1:]
        return VARIANTS[token]

    def condition(self, index):
        begin = self.significant(index, 1)
        if self.tokens[begin] != "(":
            return
        end = self.close(begin)
        inside = self.text[self.starts[begin] + 1:self.starts[end]]
        if ";" in inside or re.search(r"[^=!<>]=[^=]", re.sub(r"\[.*", "", inside)):
            return
        number = self.site(index, self.tokens[index], ["negated"])
        self.edit(begin, 1, f"(mutation::flip({number}, static_cast<bool>(")
        self.edit(end, 1, ")))")

    def literal(self, index):
        value = self.significant(index, 1)
        end = self.significant(value, 1)
        if self.tokens[value] not in ("true", "false") or self.tokens[end] != ";":
            return
        other = "false" if self.tokens[value] == "true" else "true"
        number = self.site(index, "return " + self.tokens[value], ["return " + other])
        self.edit(value, len(self.tokens[value]),
                  f"mutation::on({number}, 0) ? {other} : {self.tokens[value]}")

    def call(self, index):
        """A statement that is one call: it begins after ; { or } and ends with );"""
        before = self.significant(index, -1)
        if before is None or self.tokens[before] not in (";", "{", "}"):
            return
        if self.tokens[index] in NO_CALL:
            return
        end = self.end_of_call(index)
        if end is None:
            return
        number = self.site(index, "call", ["left out"])
        self.calls.append((index, end, len(self.edits)))
        self.edit(index, 0, f"if (!mutation::on({number}, 0)) ")

    def end_of_call(self, index):
        """Returns the index of the semicolon behind the call that begins here; None if none does."""
        if not self.in_function(index) or UNSEEN.match(self.text, self.starts[index]):
            return None
        if self.inside[index] != self.around[index]:
            return None  # in the head of a loop
        at, called = index, False
        while True:
            token = self.tokens[at]
            if token in ("(", "["):
                called = token == "("
                at = self.close(at)
                if at is None:
                    return None
            elif not re.match(r"(?:[A-Za-z_]\w*|::|->|\.)$", token):
                return None
            following = at + 1
            if self.tokens[following] == ";":
                return following if called else None
            # A name directly behind a name is a declaration, and so is one behind a blank.
            if self.tokens[following].isspace():
                following = self.significant(at, 1)
                if self.tokens[following] not in (".", "->"):
                    return None
            at = following

    def any_call(self, index):
        """A statement that is one call, wherever a statement may stand."""
        before = self.significant(index, -1)
        if before is None or self.tokens[index].isspace() or not (
                self.tokens[before] in (";", "{", "}", "else") or self.closes_condition(before)):
            return
        begin = index
        if self.tokens[index] == "return" and self.returns_nothing(index):
            begin = self.significant(index, 1)
        elif self.text.startswith("static_cast<void>(", self.starts[index]):
            begin = next(at for at in range(index, len(self.tokens)) if self.tokens[at] == "(")
        elif self.tokens[index] in NO_CALL:
            return
        end = self.end_of_call(begin)
        if end is None:
            return
        statement = " ".join(self.text[self.starts[index]:self.starts[end] + 1].split())
        number = self.site(index, "call", ["left out"], f"{self.name_of_function(index)}\t{statement}")
        if begin != index and self.tokens[index] == "return":
            self.edit(index, 0, f"if (mutation::on({number}, 0)) return; else ")
        else:
            self.edit(index, 0, f"if (!mutation::on({number}, 0)) ")
        if self.tokens[before] not in (";", "{", "}"):
            self.edit(index, 0, "{ ")
            self.edits.append((self.starts[end] + 1, 0, " }"))

    def closes_condition(self, index):
        """True if this bracket closes the head of an if or of a loop."""
        if self.tokens[index] != ")":
            return False
        opened = next((at for at in range(index, -1, -1) if self.tokens[at] == "(" and
                       self.close(at) == index), None)
        return opened is not None and self.tokens[self.significant(opened, -1)] in ("if", "for", "while", "constexpr")

    def function(self, index):
        """Returns the head of the named function around a token."""
        for head in self.heads(index):
            if re.search(r"\b(if|for|while|switch|catch|try|else|do)\b", head) or "[" in head.split("(")[0]:
                continue
            if "(" in head:
                return head
        return ""

    def name_of_function(self, index):
        found = re.search(r"([\w:~]+|operator\W+)\(", self.function(index))
        return found.group(1) if found else ""

    def returns_nothing(self, index):
        return re.search(r"\bvoid\s+[\w:]+\(", self.function(index)) is not None

    def order(self):
        """Puts a switch before each two calls that follow each other: the second comes first."""
        pairs, last = [], -1
        for one, two in zip(self.calls, self.calls[1:]):
            between = self.text[self.starts[one[1]] + 1:self.starts[two[0]]]
            if one[0] > last and between.isspace():
                pairs.append((one, two))
                last = two[1]
        for one, two in pairs:
            first, second = (self.text[self.starts[c[0]]:self.starts[c[1]] + 1] for c in (one, two))
            number = self.site(one[0], "order", ["swapped with the next"])
            offset, length, old = self.edits[one[2]]
            self.edits[one[2]] = (offset, length, f"if (mutation::on({number}, 0)) {{\n{second}\n"
                                  f"{first}\n}} else {{ {old}")
            self.edits.append((self.starts[two[1]] + 1, 0, " }"))

    def braces(self):
        """Returns for each token the index of the innermost brace around it, or None."""
        around, open_braces, inside = [], [], []
        self.inside = []  # the innermost bracket of any kind around each token
        self.opened = {}  # the index of the brace that each closing one belongs to
        for index, token in enumerate(self.tokens):
            if token == "}" and open_braces:
                self.opened[index] = open_braces.pop()
            if token in (")", "]", "}") and inside:
                inside.pop()
            self.inside.append(inside[-1] if inside else None)
            if token in ("(", "[", "{"):
                inside.append(index)
            around.append(open_braces[-1] if open_braces else None)
            if token == "{":
                open_braces.append(index)
        return around

    def heads(self, index):
        """Returns the text before each brace around a token, the innermost first."""
        brace = self.around[index]
        while brace is not None:
            head = self.plain[:self.starts[brace]]
            yield head[max(head.rfind(c) for c in ";}{") + 1:]
            brace = self.around[brace]

    def in_constant(self, index):
        """True if the compiler may evaluate the code around a token."""
        return any(re.search(r"\b(constexpr|consteval|static_assert|enum)\b", head) for head in self.heads(index))

    def in_function(self, index):
        """True if the innermost brace around is not that of a namespace, class or enum."""
        for head in self.heads(index):
            return not re.search(r"\b(namespace|class|struct|enum|union)\b", head) and (
                ")" in head or re.search(r"\b(else|try|do)\b", head) is not None)
        return False


def names_in(source):
    return subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\0")[:-1]


def main(source, target):
    sites, first = [], 0
    for name in sorted(names_in(source)):
        path, copy = os.path.join(source, name), os.path.join(target, name)
        if not os.path.isfile(path):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if name.startswith("core/") and name.endswith(".cpp") and not name.startswith(SKIPPED):
            with open(path) as handle:
                file = File(name, handle.read(), first)
            text = PREAMBLE + file.instrument()
            first, sites = file.next, sites + file.sites
            put(copy, text)
        else:
            with open(path, "rb") as handle:
                put(copy, handle.read())
            shutil.copymode(path, copy)
    with open(os.path.join(source, "tests/mutation/switches.cpp")) as handle:
        put(os.path.join(target, "core/base/switches.cpp"), handle.read())
    write_sites(target, sites)
    print(f"{first} sites, {len(sites)} mutants")


def write_sites(target, sites):
    with open(os.path.join(target, "sites.tsv"), "w") as out:
        for site in sites:
            out.write("\t".join(str(field) for field in site) + "\n")


def calls(source, target, folders):
    """Writes the sources of the folders with a switch at each call. In sites.tsv the source is the
    whole statement behind the name of its function."""
    sites, first = [], 0
    for folder in folders:
        os.makedirs(os.path.join(target, folder), exist_ok=True)
        for name in sorted(os.listdir(os.path.join(source, folder))):
            if not name.endswith((".cpp", ".cu", ".hpp", ".cuh")) or name.startswith("no_"):
                continue
            path = os.path.join(folder, name)
            with open(os.path.join(source, path)) as handle:
                file = File(path, handle.read(), first, calls_alone=True)
            put(os.path.join(target, path), PREAMBLE + file.instrument())
            first, sites = file.next, sites + file.sites
    write_sites(target, sites)
    print(f"{first} calls")


def put(path, content):
    """Writes the file unless it is there with that content, so that a build begins where it was."""
    binary = content if isinstance(content, bytes) else content.encode()
    if os.path.exists(path):
        with open(path, "rb") as handle:
            if handle.read() == binary:
                return
    with open(path, "wb") as handle:
        handle.write(binary)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        calls(sys.argv[1], sys.argv[2], sys.argv[3:])
    else:
        main(*sys.argv[1:3])
