"""Export of the chain, for people who trust neither the store nor this library.

Each line is a JSON object: `entry`, its `hash`, and `salt` (hexadecimal) and `contents` (the JSON text as it was committed to), which are null
without contents or once these are deleted. This program checks a file of them; `entry` is described in `_chain`:

    import hashlib, json, sys
    import rfc8785

    previous, number = "", 0
    for text in open(sys.argv[1], encoding="utf-8"):
        line = json.loads(text)
        entry, number = line["entry"], number + 1
        computed = hashlib.sha256(rfc8785.dumps(entry)).hexdigest()
        if computed != line["hash"] or entry["prev"] != previous or entry["seq"] != number:
            sys.exit(f"entry {number} was changed, removed or inserted")
        if line["contents"] is not None:
            committed = bytes.fromhex(line["salt"]) + line["contents"].encode()
            if hashlib.sha256(committed).hexdigest() != entry["commitment"]:
                sys.exit(f"the contents of entry {number} were changed")
        previous = computed
    print(number, previous)  # compare both with a checkpoint that was kept elsewhere
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import each_link, entry_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.approvals._tables import Link, Reads


def export(
    reads: Reads, *, after: int = 0, approval: str | None = None, with_contents: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the entries of the chain as JSON objects, one per line of an export.

    Args:
        reads: the tables.
        after: number of the last entry that was exported before.
        approval: only the entries of this approval, which form no chain by themselves.
        with_contents: False leaves out contents and salts, for a copy that shows nothing of what was asked. Its chain can be checked.

    Raises:
        StoreError: the tables cannot be read.
    """
    for link in each_link(reads, after=after, approval=approval):
        yield _line(link, with_contents=with_contents)


def _line(link: Link, *, with_contents: bool) -> dict[str, Any]:
    try:
        entry: object = entry_of(link)
    except (ValueError, RecursionError):  # damaged: the hash of a text is not that of an entry
        entry = link.data.decode("utf-8", "backslashreplace")
    shown = with_contents and link.salt is not None and link.contents is not None
    return {
        "entry": entry,
        "hash": link.hash,
        "salt": link.salt.hex() if shown and link.salt is not None else None,
        "contents": link.contents.decode("utf-8", "backslashreplace") if shown and link.contents is not None else None,
    }
