"""Documents as retrieval libraries have them, and what is read of them, for the tests of search results."""

from grace_kp.confidence import read_results


class Document:
    """A document as retrieval libraries have it."""

    def __init__(self, page_content, **metadata):
        self.id = None
        self.page_content = page_content
        self.metadata = metadata


def hits(count=0, scores=(), sources=(), unusable=0):
    return (count, tuple(scores), tuple(sources), unusable)


def read(result):
    found = read_results(result)
    return (found.count, found.scores, found.sources, found.unusable_scores)
