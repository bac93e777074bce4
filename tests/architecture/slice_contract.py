"""An import contract: a slice is reached only through its package, or through its ``testing`` module."""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

__all__ = ["SliceEntryContract"]


class SliceEntryContract(Contract):
    """``rooms`` are packages whose direct children are slices; ``open`` names the slices whose modules anybody may import."""

    rooms: Any = fields.ListField(subfield=fields.StringField())
    open: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        slices = {child for room in self.rooms for child in graph.find_children(room)} - set(self.open)
        broken: list[tuple[str, str]] = []
        for name in sorted(slices):
            inside = {name, *graph.find_descendants(name)}
            entries = {name, f"{name}.testing"}
            for module in sorted(inside - entries):
                broken += [(importer, module) for importer in sorted(graph.find_modules_that_directly_import(module) - inside)]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, module in check.metadata["broken"]:
            output.print_error(f"{importer} imports {module}; import the slice's package instead.")
