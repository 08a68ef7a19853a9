"""Compiles Java source in a driver's JVM, by Spark's own Janino: no jar has to be installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

_loaders: WeakKeyDictionary[Any, dict[object, Any]] = WeakKeyDictionary()
_HEAD = re.compile(r"^(?:package|import) [^;]+;\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JavaUnit:
    """Java sources that know each other, compiled together and once for each JVM.

    Attributes:
        room: the Python package that has them in its folder ``java``.
        package: their Java package.
        names: their names, without ``.java``.
        parent: the unit whose classes they import, besides Spark's; None where they need Spark's alone.
    """

    room: str
    package: str
    names: tuple[str, ...]
    parent: JavaUnit | None = None

    def load(self, jvm: Any, name: str) -> Any:
        """Return one of the classes.

        Args:
            jvm: py4j's view of the JVM.
            name: the class's name, without its package.

        Raises:
            py4j.protocol.Py4JJavaError: the sources do not compile there.
        """
        loaders = _loaders.setdefault(jvm, {})
        if self not in loaders:
            parent = self.parent.load(jvm, self.parent.names[0]).getClassLoader() if self.parent else None
            loaders[self] = _compile(jvm, self._source(), parent)
        return loaders[self].loadClass(f"{self.package}.{name}")

    def _source(self) -> str:
        """Return the sources as one compilation unit: Janino knows no others."""
        folder = files(self.room).joinpath("java")
        texts = [folder.joinpath(f"{name}.java").read_text(encoding="utf-8") for name in self.names]
        imports = sorted(
            {line for text in texts for line in _HEAD.findall(text) if line.startswith("import")}
        )
        bodies = [_HEAD.sub("", text) for text in texts]
        return f"package {self.package};\n" + "".join(imports) + "\n".join(bodies)


SHARED = JavaUnit(
    "spark_events.jvm", "io.sparkevents.jvm", ("Reflect", "Identities", "Written", "Calls", "Products")
)
"""The Java that several packages share."""


def compile_java(jvm: Any, source: str, name: str) -> Any:
    """Return a class of some Java source; of the same source and name the same class, while the JVM lives.

    Py4j remembers methods by the name of their class, so of two classes of one name it calls those of the
    first on objects of the second: a second application in one process would fail by that.

    Args:
        jvm: py4j's view of the JVM.
        source: one compilation unit.
        name: the class's full name.

    Raises:
        py4j.protocol.Py4JJavaError: the source does not compile there.
    """
    loaders = _loaders.setdefault(jvm, {})
    if (name, source) not in loaders:
        loaders[name, source] = _compile(jvm, source, None)
    return loaders[name, source].loadClass(name)


def _compile(jvm: Any, source: str, parent: Any) -> Any:
    """Return the class loader of a compilation unit."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent or jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader()


def new(gateway: Any, java_class: Any, *arguments: Any) -> Any:
    """Return an object of a compiled class, by its only constructor.

    Args:
        gateway: py4j's gateway to the JVM.
        java_class: the class, as ``JavaUnit.load`` returns it.
        arguments: of the constructor.
    """
    array = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for index, argument in enumerate(arguments):
        array[index] = argument
    return java_class.getConstructors()[0].newInstance(array)
