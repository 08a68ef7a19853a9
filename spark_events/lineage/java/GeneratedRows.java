package io.sparkevents.lineage;

import io.sparkevents.jvm.Reflect;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Finds the rows that a generator makes of an input row: which expression gives which column its value. */
class GeneratedRows {
    /** Generators that make as many rows of each row, whatever is in it. */
    private static final List COUNTED = Arrays.asList("JsonTuple", "Stack");
    private final StructFields structs;

    GeneratedRows(StructFields structs) {
        this.structs = structs;
    }

    /** Returns the rows, each a list of expressions; null where they are not known. The position has no column here. */
    List of(Expression generator, int columns) {
        String name = Reflect.simpleName(generator.getClass());
        if (name.equals("Stack")) {
            return ofStack(Reflect.list(generator.children()), columns);
        }
        if (name.equals("Inline")) {
            return ofStructs((Expression) generator.children().head());
        }
        if (name.equals("Explode") || name.equals("PosExplode")) {
            Expression collection = (Expression) generator.children().head();
            return hasPosition(generator) && columns == 3 || columns == 2 && !hasPosition(generator)
                ? ofMap(collection) : ofArray(collection);
        }
        return null;
    }

    static boolean hasPosition(Expression generator) {
        return Reflect.isA(generator, "PosExplode");
    }

    /** Tells whether the expression itself says how many rows there are, whatever is in them. */
    boolean areCounted(Expression generator) {
        if (COUNTED.contains(Reflect.simpleName(generator.getClass()))) {
            return true;
        }
        if (generator.children().isEmpty()) {
            return false;
        }
        List made = structs.made((Expression) generator.children().head());
        for (int i = 0; i < made.size(); i++) {
            if (!Reflect.isA(made.get(i), "CreateArray") && !Reflect.isA(made.get(i), "CreateMap")) {
                return false;
            }
        }
        return true;
    }

    /** stack(n, …) makes n rows of values, one after the other: the last may lack columns. */
    private static List ofStack(List values, int columns) {
        ArrayList rows = new ArrayList();
        for (int begin = 1; begin < values.size() && columns > 0; begin += columns) {
            rows.add(values.subList(begin, Math.min(begin + columns, values.size())));
        }
        return rows;
    }

    private List ofArray(Expression array) {
        List elements = elements(array);
        if (elements == null) {
            return null;
        }
        ArrayList rows = new ArrayList();
        for (int i = 0; i < elements.size(); i++) {
            rows.add(Arrays.asList(elements.get(i)));
        }
        return rows;
    }

    /** A row for each struct, with a column for each field. */
    private List ofStructs(Expression array) {
        List elements = elements(array);
        ArrayList rows = new ArrayList();
        for (int i = 0; elements != null && i < elements.size(); i++) {
            List made = structs.made((Expression) elements.get(i));
            for (int j = 0; j < made.size(); j++) {
                List values = StructFields.values((Expression) made.get(j));
                if (values == null) {
                    return null;
                }
                rows.add(values);
            }
        }
        return elements == null ? null : rows;
    }

    /** A row for each pair of a key and a value. */
    private List ofMap(Expression map) {
        List made = structs.made(map);
        ArrayList rows = new ArrayList();
        for (int i = 0; i < made.size(); i++) {
            Expression source = (Expression) made.get(i);
            List pairs = Reflect.list(source.children());
            if (Reflect.isA(source, "MapFromArrays")) {
                rows.add(StructFields.elementsOf(pairs));
            } else if (Reflect.isA(source, "MapFromEntries")) {
                List entries = ofStructs((Expression) pairs.get(0));
                if (entries == null) {
                    return null;
                }
                rows.addAll(entries);
            } else if (Reflect.isA(source, "CreateMap")) {
                for (int key = 0; key + 1 < pairs.size(); key += 2) {
                    rows.add(pairs.subList(key, key + 2));
                }
            } else {
                return null;
            }
        }
        return rows;
    }

    /** Returns the expressions that the elements of an array are; null where they are not known. */
    private List elements(Expression array) {
        List made = structs.made(array);
        ArrayList elements = new ArrayList();
        for (int i = 0; i < made.size(); i++) {
            Expression source = (Expression) made.get(i);
            if (Reflect.isA(source, "ArraysZip")) {
                elements.add(source);  // which stands for its elements
            } else if (Reflect.isA(source, "CreateArray")) {
                elements.addAll(Reflect.list(source.children()));
            } else {
                return null;
            }
        }
        return elements;
    }
}
