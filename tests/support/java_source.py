"""Java that a test brings along, compiled as the product compiles its own."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

_classes: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def compile_java(jvm: Any, source: str, name: str) -> Any:
    """Return a class of some Java source, compiled once: py4j takes two classes of one name for the same.

    Args:
        jvm: py4j's view of the JVM.
        source: one compilation unit.
        name: the class's full name.
    """
    classes = _classes.setdefault(jvm, {})
    if name not in classes:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        classes[name] = compiler.getClassLoader().loadClass(name)
    return classes[name]
