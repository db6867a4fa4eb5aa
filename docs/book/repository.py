"""A preprocessor of mdBook: files of the repository that pages link to, and that are not in this folder,
become pages of the book, so that no link leads out of it.

mdBook gives a pair of context and book to standard input and reads the book from standard output.
"""

import json
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
TOP = DOCS.parent
# Folder of these pages in the book.
FOLDER = "repository"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
LANGUAGES = {".rs": "rust,ignore", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from chapters(chapter["sub_items"])


def in_book(page):
    """Path in the book of a page of this folder: mdBook writes README.md as index.html."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page)


def page_of(file):
    """Path in the book of a file that is not in the folder of the pages."""
    path = file.relative_to(TOP).as_posix()
    return f"{FOLDER}/{path}" if path.endswith(".md") else f"{FOLDER}/{path}.md"


def with_links(text, folder, place, wanted):
    """Changes the links of a page, whose folder is `folder` and whose place in the book is `place`."""

    def changed(match):
        target, anchor = match.group(1), match.group(2) or ""
        if re.match(r"[a-z]+:", target):
            return match.group(0)
        file = (folder / target).resolve()
        if file.is_dir():
            file = file / "README.md"
        if not file.is_file():
            # a folder without a page: the overview has what is in it
            return os.path.relpath(in_book("README.md"), Path(place).parent)
        if file.is_relative_to(DOCS):
            page = in_book(file.relative_to(DOCS).as_posix())
        else:
            page = page_of(file)
            wanted.setdefault(file, page)
        return os.path.relpath(page, Path(place).parent) + anchor

    return LINK.sub(changed, text)


def content_of(file, page, wanted):
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return with_links(text, file.parent, page, wanted)
    language = LANGUAGES.get(file.suffix, "text")
    return f"# {file.relative_to(TOP).as_posix()}\n\n````{language}\n{text}````\n"


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    # `sections` until mdBook 0.4
    items = book["items"] if "items" in book else book["sections"]
    wanted = {}
    for chapter in chapters(items):
        if chapter["path"]:
            folder = (DOCS / chapter["source_path"]).parent
            chapter["content"] = with_links(chapter["content"], folder, chapter["path"], wanted)
    made = {}
    while pending := [file for file in wanted if file not in made]:
        for file in pending:
            made[file] = content_of(file, wanted[file], wanted)
    items.append({"PartTitle": "Files of the repository"})
    for file in sorted(made):
        items.append({"Chapter": {
            "name": file.relative_to(TOP).as_posix(),
            "content": made[file],
            "number": None,
            "sub_items": [],
            "path": wanted[file],
            "source_path": None,
            "parent_names": [],
        }})
    json.dump(book, sys.stdout)


main()
