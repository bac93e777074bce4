from features.tools.testing import ToolBench

from .conftest import MakeBench


def test_all_built_in_tools_are_there_in_order(bench: ToolBench) -> None:
    """Order is part of the cached prompt."""
    assert [spec.name for spec in bench.registry.specs()] == ["read", "write", "edit", "bash", "grep", "find", "ls", "send", "web_fetch"]
    assert bench.registry.get("nothing") is None


def test_disabled_tools_are_not_offered(make_bench: MakeBench) -> None:
    """The operator decides."""
    registry = make_bench(disabled=("bash", "send")).registry

    assert registry.get("bash") is None
    assert registry.get("send") is None
    assert registry.get("read") is not None
