"""The citations of an answer: annotations, and the lists of search endpoints."""

from collections.abc import Iterator, Mapping

from chatd.content.domain.parts import Source
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import SourceCited
from chatd.providers.completions.chunks import Chunk


class Sources:
    """Collects the sources of one answer, each once."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def take_annotations(self, annotations: object) -> None:
        """Add the annotations of a delta."""
        for annotation in _mappings(annotations):
            if annotation.get("type") == "url_citation":
                cited = annotation.get("url_citation")
                self._add(cited if isinstance(cited, Mapping) else annotation)

    def take_lists(self, chunk: Chunk) -> None:
        """Add the lists beside the choices."""
        for result in _mappings(chunk.search_results):
            self._add(result)
        if isinstance(chunk.citations, list):
            for citation in chunk.citations:
                self._add(citation if isinstance(citation, Mapping) else {"url": citation})

    def cited(self) -> Iterator[SourceCited]:
        """Yield the sources in the order of their first occurrence."""
        for number, (url, title) in enumerate(self._titles.items(), 1):
            yield SourceCited(Source(f"source_{number}", url, title))

    def _add(self, cited: Mapping[object, object]) -> None:
        url, title = cited.get("url"), cited.get("title")
        if isinstance(url, str) and url:
            known = self._titles.get(repaired(url), "")
            self._titles[repaired(url)] = known or (
                repaired(title) if isinstance(title, str) else ""
            )


def _mappings(values: object) -> Iterator[Mapping[object, object]]:
    if isinstance(values, list):
        for value in values:
            if isinstance(value, Mapping):
                yield value
