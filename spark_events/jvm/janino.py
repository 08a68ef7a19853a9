"""Compiles Java source in a driver's JVM, by Spark's own Janino: no jar has to be installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

_loaders: WeakKeyDictionary[Any, dict[JavaUnit, Any]] = WeakKeyDictionary()
_compiling = RLock()
"""Two threads that load a unit at once would make two classes of one name of it."""
_HEAD = re.compile(r"^(?:package|import) [^;]+;\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JavaUnit:
    """Java sources that refer to each other, compiled together, once for each JVM.

    Py4j caches methods by class name, so for two classes of one name it would call the first one's methods on
    objects of the second: this would break a second application in one process.

    Attributes:
        python_package: the Python package whose folder ``java`` has them.
        java_package: their Java package.
        names: their names, without ``.java``.
        parent: the unit whose classes they import, besides Spark's; None if they only need Spark's.
    """

    python_package: str
    java_package: str
    names: tuple[str, ...]
    parent: JavaUnit | None = None

    def load(self, jvm: Any, name: str) -> Any:
        """Return a class of the unit.

        Args:
            jvm: py4j's view of the JVM.
            name: the class's name, without its package.

        Raises:
            py4j.protocol.Py4JJavaError: the sources do not compile there.
        """
        with _compiling:
            loaders = _loaders.setdefault(jvm, {})
            if self not in loaders:
                compiler = jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setParentClassLoader(self._parent_loader(jvm))
                compiler.cook(self._source())
                loaders[self] = compiler.getClassLoader()
            loader = loaders[self]
        return loader.loadClass(f"{self.java_package}.{name}")

    def is_loaded(self, jvm: Any) -> bool:
        """Return whether its classes are there."""
        return self in _loaders.get(jvm, {})

    def _parent_loader(self, jvm: Any) -> Any:
        if self.parent is None:
            return jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self.parent.load(jvm, self.parent.names[0]).getClassLoader()

    def _source(self) -> str:
        """Return the sources as a single compilation unit, all that Janino supports."""
        folder = files(self.python_package).joinpath("java")
        texts = [folder.joinpath(f"{name}.java").read_text(encoding="utf-8") for name in self.names]
        imports = sorted(
            {line for text in texts for line in _HEAD.findall(text) if line.startswith("import")}
        )
        bodies = [_HEAD.sub("", text) for text in texts]
        return f"package {self.java_package};\n" + "".join(imports) + "\n".join(bodies)


QUERIES = JavaUnit("spark_events.jvm", "io.sparkevents.jvm", ("StreamingQueries",))
"""The streaming queries that run in a driver."""
SHARED = JavaUnit(
    "spark_events.jvm",
    "io.sparkevents.jvm",
    ("Reflect", "Identities", "TableProperties", "IcebergTables", "Written", "Calls", "Products"),
    QUERIES,
)
"""The Java that several packages share."""
FILES = JavaUnit("spark_events.jvm", "io.sparkevents.jvm", ("ExclusiveFile",), SHARED)
"""A file that only one process can create, on any of Hadoop's file systems."""


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
