#!/usr/bin/env python3
"""Links in documents lead somewhere, decisions have one form and are in the index, and words are the glossary's."""

import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECISIONS = ROOT / "docs/decisions"
GLOSSARY = ROOT / "docs/glossary.md"
SECTIONS = ["Context", "Decision", "Consequence"]
STATUS = re.compile(r"- Status: (accepted|proposed|replaced by (\d{4}))$", re.M)
# Written by a script from tests/compatibility*.tsv; their words are those tables'.
GENERATED = {"docs/compatibility.md", "docs/compatibility-tensorflow.md"}
# Whose words are checked against the glossary's list: every *.md, and the comments of code below these folders. A
# folder joins when its comments are free of those words; the list of words is the same for all.
FOLDERS_OF_CODE = tuple("api bench cli cluster engine host node proto python scripts spark tests worker".split())
C_LIKE = {".h", ".cc", ".cpp", ".proto", ".scala", ".java"}


def tracked(*patterns):
    """Files that git knows, or would know once they are added."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [ROOT / name for name in sorted(set(names)) if (ROOT / name).is_file()]


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(text):
    """The text with code replaced by blanks: fenced and indented blocks, and spans between backticks."""
    fenced = re.sub(r"^```.*?^```$", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M | re.S)
    lines = ["" if re.match(r"    (?! *[-|])", line) else line for line in fenced.split("\n")]
    return re.sub(r"`[^`]*`", lambda m: re.sub(r"[^\n]", " ", m[0]), "\n".join(lines))


def comments(path):
    """The text with everything but comments, and Python's strings of several lines, replaced by blank lines."""
    text = path.read_text()
    if path.suffix in C_LIKE:
        found = [re.search(r"//.*|^ *(/\*)?\*.*|/\*.*", line) for line in text.split("\n")]
        return "\n".join(m[0] if m else "" for m in found)
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.string.startswith('"""'):
            for number, line in enumerate(token.string.split("\n"), token.start[0] - 1):
                lines[number] = line
    return "\n".join(lines)


def anchors(path):
    """The names that GitHub gives to headings."""
    heads = re.findall(r"^#+ +(.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def check_links(path):
    text = re.sub(r"`[^`\n]*`", lambda m: " " * len(m[0]), path.read_text())
    for match in re.finditer(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = match[1].partition("#")
        where = f"{name_of(path)}:{text[: match.start()].count(chr(10)) + 1}"
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        file = path.parent / target if target else path
        if not file.exists():
            yield f"{where}: the link {match[1]} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{where}: {target or 'this page'} has no heading for #{anchor}"


def check_decision(path, index):
    name, text = name_of(path), path.read_text()
    number = path.name[:4]
    if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name) or not text.startswith(f"# {number}. "):
        yield f"{name}: call it NNNN-short-name.md, and begin it with '# NNNN. Title'"
    if not re.search(r"^- Date: \d{4}-\d\d-\d\d$", text, re.M):
        yield f"{name}: a line '- Date: YYYY-MM-DD' is missing"
    status = STATUS.search(text)
    if not status:
        yield f"{name}: a line '- Status: accepted' (or 'proposed', 'replaced by NNNN') is missing"
    elif status[2] and not list(DECISIONS.glob(f"{status[2]}-*.md")):
        yield f"{name}: it is replaced by {status[2]}, which is not there"
    if re.findall(r"^## (.*)$", text, re.M) != SECTIONS or re.search(r"^## .*\n+(##|\Z)", text, re.M):
        yield f"{name}: it needs the sections {', '.join(SECTIONS)}, in this order, none of them empty"
    if index.count(f"]({path.name})") != 1:
        yield f"{name}: name it once in docs/decisions/README.md"
    elif f"[{number}]({path.name}) {text.splitlines()[0][8:]}\n" not in index:
        yield f"{name}: docs/decisions/README.md lists it under another number or title"


def check_decisions():
    index = (DECISIONS / "README.md").read_text()
    files = [f for f in sorted(DECISIONS.glob("*.md")) if f.name != "README.md"]
    for path in files:
        yield from check_decision(path, index)
    numbers = [f.name[:4] for f in files]
    for number in sorted({n for n in numbers if numbers.count(n) > 1}):
        yield f"docs/decisions: there are several decisions {number}"


def unused_words():
    """Word -> what replaces it, from the table at the glossary's end."""
    table = GLOSSARY.read_text().partition("## Words not to use")[2]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", table, re.M)
    return {word: instead for words, instead in rows for word in re.findall(r"`([^`]+)`", words)}


def words_in(text, where, words):
    pattern = r"\b(" + "|".join(re.escape(w).replace(r"\ ", r"\s+") for w in words) + r")\b"
    for match in re.finditer(pattern, text, re.I):
        word = " ".join(match[0].lower().split())
        line = text[: match.start()].count("\n") + 1
        yield f"{where}:{line}: '{word}' is a word of our own; say {words[word]} (docs/glossary.md)"


def check_words(words):
    for path in tracked("*.md"):
        if name_of(path) not in GENERATED:
            yield from words_in(prose(path.read_text()), name_of(path), words)
    for path in tracked(*FOLDERS_OF_CODE) if FOLDERS_OF_CODE else []:
        if path.suffix in C_LIKE | {".py"}:
            yield from words_in(comments(path), name_of(path), words)


def main():
    documents, words = tracked("*.md"), unused_words()
    mistakes = [] if words else ["docs/glossary.md: the table of words not to use is missing or has another form"]
    mistakes += [m for path in documents for m in check_links(path)]
    mistakes += [*check_decisions(), *(check_words(words) if words else [])]
    decisions = len(list(DECISIONS.glob("0*.md")))
    right = f"{len(documents)} documents, {decisions} decisions, links and words are right"
    print("\n".join(mistakes) if mistakes else right)
    sys.exit(1 if mistakes else 0)


main()
