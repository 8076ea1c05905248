package kdissect;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.mutable.ListBuffer;
import scala.runtime.AbstractPartialFunction;

/**
 * A rule of Spark's optimizer (kdissect/spark/scans.py): a scan of captures reads only the columns that its
 * query needs, and only the rows that pass those filters of the query that kdissect understands. The plan says
 * which captures, columns and filters these are. What the rule does not know stays as it is.
 *
 * Janino compiles this file. It knows no generics and no lambdas.
 */
public final class CaptureScans extends Rule {
    private static final String NAME = "kdissect";
    private static final String CHOSEN = "kdissect: "; // kdissect.spark.table has chosen the name
    private static final String FILTERS = "kdissect.filters"; // the key in metadata (kdissect/spark/pushed.py)
    private static final int MOST = 200; // characters of paths, and of filters
    private static final org.apache.spark.sql.sources.Filter[] NONE = {};
    private static final List TYPES = Arrays.asList(new Object[] {
        DataTypes.StringType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
        DataTypes.BooleanType
    }); // of columns that kdissect compares as Spark does

    private final List known;
    private final List unread;

    /** The names of the filters that kdissect understands, and of columns whose filters it does not take. */
    public CaptureScans(String known, String unread) {
        this.known = Arrays.asList(known.split(","));
        this.unread = Arrays.asList(unread.split(","));
    }

    public TreeNode apply(TreeNode plan) {
        for (int step = 0; step < 3; step++) plan = ((LogicalPlan) plan).transformUp(new Change(this, step));
        return plan;
    }

    static final class Change extends AbstractPartialFunction {
        private final CaptureScans rule;
        private final int step;

        Change(CaptureScans rule, int step) {
            this.rule = rule;
            this.step = step;
        }

        public boolean isDefinedAt(Object node) {
            return changed(node) != null;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            Object made = changed(node);
            return made == null ? otherwise.apply(node) : made;
        }

        private Object changed(Object node) {
            try {
                return step == 0 ? pruned(node) : step == 1 ? rule.filtered(node) : named(node);
            } catch (Exception error) { // the query is right without this rule, too
                return null;
            } catch (LinkageError error) { // Spark has other classes
                return null;
            } catch (AssertionError error) { // of Scala
                return null;
            }
        }
    }

    /** A projection whose scan has only the columns that it and its filter need. The first one stays: with it
     * goes what the catalog knows of the table, and a scan cannot be without columns. */
    private static Object pruned(Object node) throws Exception {
        if (!(node instanceof Project)) return null;
        Project project = (Project) node;
        LogicalPlan below = project.child();
        Filter filter = null;
        if (below instanceof Filter) {
            filter = (Filter) below;
            below = filter.child();
        }
        if (!isOurs(below)) return null;
        DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) below;
        DataSourceV2Relation relation = scan.relation();
        StructType all = scan.scan().readSchema();
        if (all.size() != scan.output().size()) return null;
        StructType some = new StructType();
        ListBuffer output = new ListBuffer();
        for (int at = 0; at < all.size(); at++) {
            Attribute column = (Attribute) scan.output().apply(at);
            boolean isFiltered = filter != null && filter.references().contains(column);
            if (at == 0 || isFiltered || project.references().contains(column)) {
                some = some.add(all.fields()[at]);
                output.addOne(column);
            }
        }
        if (some.size() == all.size()) return null;
        Object reads = reading(relation.table().name(), some, relation.options(), NONE);
        LogicalPlan made = (LogicalPlan) copied(scan, new Object[] {relation, reads, output.toList()});
        if (filter != null) made = filter.copy(filter.condition(), made);
        return project.copy(project.projectList(), made);
    }

    /** A filter whose scan makes fewer rows. The filter stays: it may have parts that kdissect does not know. */
    private Object filtered(Object node) throws Exception {
        if (!(node instanceof Filter)) return null;
        Filter filter = (Filter) node;
        if (!isOurs(filter.child()) || !filter.condition().deterministic()) return null;
        DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) filter.child();
        List found = new ArrayList();
        gather(filter.condition(), scan.scan().readSchema(), found);
        if (found.isEmpty()) return null;
        LogicalPlan made = (LogicalPlan) telling(scan, (org.apache.spark.sql.sources.Filter[]) found.toArray(NONE));
        return filter.copy(filter.condition(), made);
    }

    /** Find the parts of a condition that kdissect understands. All of them must be true. */
    private void gather(Expression condition, StructType schema, List found) {
        if (condition instanceof And) {
            gather(((And) condition).left(), schema, found);
            gather(((And) condition).right(), schema, found);
            return;
        }
        Option part = DataSourceStrategy$.MODULE$.translateFilter(condition, false);
        if (part.isDefined() && isUnderstood((org.apache.spark.sql.sources.Filter) part.get(), schema)) {
            found.add(part.get());
        }
    }

    private boolean isUnderstood(org.apache.spark.sql.sources.Filter filter, StructType schema) {
        String[] columns = filter.references();
        for (int at = 0; at < columns.length; at++) {
            DataType type = schema.apply(columns[at]).dataType();
            if (unread.contains(columns[at]) || !TYPES.contains(type)) return false;
        }
        return isKnown(filter);
    }

    private boolean isKnown(org.apache.spark.sql.sources.Filter filter) {
        Product parts = (Product) filter;
        if (!known.contains(parts.productPrefix())) return false;
        for (int at = 0; at < parts.productArity(); at++) {
            Object part = parts.productElement(at);
            boolean isFilter = part instanceof org.apache.spark.sql.sources.Filter;
            if (isFilter && !isKnown((org.apache.spark.sql.sources.Filter) part)) return false;
        }
        return true;
    }

    /** A filter as kdissect/spark/pushed.py reads it: its name, then its parts. */
    private static List listed(org.apache.spark.sql.sources.Filter filter) {
        Product parts = (Product) filter;
        List made = new ArrayList();
        made.add(parts.productPrefix());
        for (int at = 0; at < parts.productArity(); at++) {
            Object part = parts.productElement(at);
            boolean isFilter = part instanceof org.apache.spark.sql.sources.Filter;
            made.add(isFilter ? listed((org.apache.spark.sql.sources.Filter) part) : part);
        }
        return made;
    }

    private static Object named(Object node) throws Exception {
        return isOurs(node) ? telling((DataSourceV2ScanRelation) node, NONE) : null;
    }

    /** A scan whose plan says what it reads. It gets a source of its own, as the scans of {@link #pruned} have.
     * So each query looks for files, whatever its columns: Spark keeps the files that a source found once. */
    private static Object telling(DataSourceV2ScanRelation scan, org.apache.spark.sql.sources.Filter[] filters)
            throws Exception {
        DataSourceV2Relation relation = scan.relation();
        String name = relation.table().name();
        StructType schema = scan.scan().readSchema();
        String title = shown(name, relation.options(), schema, filters);
        Object reads = reading(name, schema, relation.options(), filters);
        Object table = new NamedTable(title, schema);
        return copied(scan, new Object[] {copied(relation, new Object[] {table}), reads});
    }

    private static String shown(
            String name, CaseInsensitiveStringMap options, StructType schema,
            org.apache.spark.sql.sources.Filter[] filters) {
        String made = name;
        try {
            if (name.equals(NAME)) made = NAME + " (" + title(options, schema) + ")";
        } catch (Exception error) { // without a title the plan has the name only
            made = name;
        }
        if (filters.length == 0) return made;
        String all = Arrays.asList(filters).toString();
        return made + ", PushedFilters: " + (all.length() > MOST ? all.substring(0, MOST) + "…]" : all);
    }

    /** A table that this rule has named. */
    static final class NamedTable extends PythonTable {
        NamedTable(String name, StructType schema) {
            super(new PythonDataSourceV2(), name, schema);
        }
    }

    /** It throws if the session does not know the source: a view may be of another session. Then the scan keeps
     * the source that it has. */
    private static PythonScan reading(
            String name, StructType schema, CaseInsensitiveStringMap options,
            org.apache.spark.sql.sources.Filter[] filters) throws Exception {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(name);
        source.source(); // looks for it now, not when the query runs
        return new PythonScan(source, name, filters.length > 0 ? with(schema, filters) : schema, options, filters);
    }

    /** A schema with filters in the metadata of its first column. Only a source in Python sees this schema. */
    private static StructType with(StructType schema, org.apache.spark.sql.sources.Filter[] filters)
            throws Exception {
        List all = new ArrayList();
        for (int at = 0; at < filters.length; at++) all.add(listed(filters[at]));
        String text = new ObjectMapper().writeValueAsString(all);
        StructField[] fields = (StructField[]) schema.fields().clone();
        StructField first = fields[0];
        Metadata metadata = new MetadataBuilder().withMetadata(first.metadata()).putString(FILTERS, text).build();
        fields[0] = new StructField(first.name(), first.dataType(), first.nullable(), metadata);
        return new StructType(fields);
    }

    private static boolean isOurs(Object node) {
        if (!(node instanceof DataSourceV2ScanRelation)) return false;
        DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) node;
        if (scan.relation().table() instanceof NamedTable) return false;
        String name = scan.relation().table().name();
        return scan.scan() instanceof PythonScan && (name.equals(NAME) || name.startsWith(CHOSEN));
    }

    /** Which table of which captures. A table of the catalog has its options in its schema. */
    private static String title(CaseInsensitiveStringMap given, StructType schema) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Metadata metadata = schema.fields()[0].metadata();
        Map known = new HashMap();
        if (metadata.contains(NAME)) known = (Map) json.readValue(metadata.getString(NAME), HashMap.class);
        CaseInsensitiveStringMap kept = new CaseInsensitiveStringMap(known);
        CaseInsensitiveStringMap places = given.containsKey("path") || given.containsKey("paths") ? given : kept;
        String paths = places.get("path");
        if (places.containsKey("paths")) {
            paths = String.join(", ", (List) json.readValue(places.get("paths"), List.class));
        }
        paths = paths.replaceAll("(://[^?,]*)\\?[^,]*", "$1").replaceAll("://[^/,]*@", "://…@");
        if (paths.length() > MOST) paths = paths.substring(0, MOST) + "…";
        String table = "exchanges";
        String[] options = {"table", "stats"};
        for (int at = 0; at < options.length; at++) {
            if (kept.containsKey(options[at])) table = kept.get(options[at]);
            if (given.containsKey(options[at])) table = given.get(options[at]);
        }
        return table + " of " + paths;
    }

    /** A copy of a case class, whose first fields are others. How many it has depends on Spark's version. */
    private static Object copied(Product of, Object[] first) throws Exception {
        Object[] fields = new Object[of.productArity()];
        for (int at = 0; at < fields.length; at++) {
            fields[at] = at < first.length ? first[at] : of.productElement(at);
        }
        Method[] methods = of.getClass().getMethods();
        for (int at = 0; at < methods.length; at++) {
            if (methods[at].getName().equals("copy") && methods[at].getParameterCount() == fields.length) {
                return methods[at].invoke(of, fields);
            }
        }
        throw new NoSuchMethodException("copy");
    }
}
