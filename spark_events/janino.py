"""Compiles Java source in a driver's JVM, by Spark's own Janino: no jar has to be installed."""

from __future__ import annotations

from typing import Any


def compile_java(jvm: Any, source: str, name: str, parent: Any = None) -> Any:
    """Return a class of some Java source.

    Args:
        jvm: py4j's view of the JVM.
        source: one compilation unit.
        name: the class's full name.
        parent: the class loader that knows what the source refers to; that of Spark by default.

    Raises:
        py4j.protocol.Py4JJavaError: the source does not compile there.
    """
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent or jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
