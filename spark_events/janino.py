"""Compiles Java source in a driver's JVM, by Spark's own Janino: no jar has to be installed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

_compiled: WeakKeyDictionary[Any, dict[tuple[str, str], Any]] = WeakKeyDictionary()
_HEAD = re.compile(r"^(?:package|import) [^;]+;\n", re.MULTILINE)


def compile_java(jvm: Any, source: str, name: str, parent: Any = None) -> Any:
    """Return a class of some Java source; of the same source and name the same class, while the JVM lives.

    Py4j remembers methods by the name of their class, so of two classes of one name it calls those of the
    first on objects of the second: a second application in one process would fail by that.

    Args:
        jvm: py4j's view of the JVM.
        source: one compilation unit.
        name: the class's full name.
        parent: the class loader that knows what the source refers to; that of Spark by default.

    Raises:
        py4j.protocol.Py4JJavaError: the source does not compile there.
    """
    known = _compiled.setdefault(jvm, {})
    if (name, source) not in known:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(parent or jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        known[name, source] = compiler.getClassLoader().loadClass(name)
    return known[name, source]


def one_unit(package: str, sources: Iterable[str]) -> str:
    """Return Java sources as one compilation unit of a package, for they know each other."""
    texts = list(sources)
    imports = sorted({line for text in texts for line in _HEAD.findall(text) if line.startswith("import")})
    bodies = [_HEAD.sub("", text) for text in texts]
    return f"package {package};\n" + "".join(imports) + "\n".join(bodies)


def for_session(compiled: Any, spark: Any) -> Any:
    """Return an object of a compiled class whose only constructor takes Spark's own session.

    Args:
        compiled: the class, as ``compile_java`` returns it.
        spark: a SparkSession.
    """
    gateway = spark.sparkContext._gateway
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = spark._jsparkSession
    return compiled.getConstructors()[0].newInstance(arguments)


def java_texts(room: str, names: Iterable[str]) -> list[str]:
    """Return the Java sources of a room.

    Args:
        room: the package that has them in its folder ``java``.
        names: their names, without ``.java``.
    """
    folder = files(room).joinpath("java")
    return [folder.joinpath(f"{name}.java").read_text(encoding="utf-8") for name in names]
