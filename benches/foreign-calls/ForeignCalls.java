import com.sun.jna.Callback;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.function.IntConsumer;
import jdk.incubator.foreign.CLinker;
import jdk.incubator.foreign.FunctionDescriptor;
import jdk.incubator.foreign.MemoryAccess;
import jdk.incubator.foreign.MemoryAddress;
import jdk.incubator.foreign.MemorySegment;
import jdk.incubator.foreign.ResourceScope;

/**
 * What a call of a C function costs by JNA and by Panama, in the incubator module of JDK 17, alone and with a call back.
 *
 * <p>From this folder, after {@code benches/run} has built the servers on the JVM:
 * {@code java --add-modules jdk.incubator.foreign --enable-native-access=ALL-UNNAMED -cp "../servers/jvm/mcpline/target/lib/*" ForeignCalls.java}
 */
public final class ForeignCalls {
    private static final int CALLS = 300_000;
    private static final int ROUNDS = 9;

    /** By JNA's direct mapping, as uniffi uses it. */
    static final class Direct {
        static {
            Native.register(Direct.class, "c");
        }

        private Direct() {}

        static native long labs(long value);

        static native void qsort(Pointer base, long count, long width, Comparison comparison);
    }

    interface Comparison extends Callback {
        int compare(Pointer left, Pointer right);
    }

    private ForeignCalls() {}

    static int compare(MemoryAddress left, MemoryAddress right) {
        return 0;
    }

    public static void main(String[] arguments) throws Throwable {
        var linker = CLinker.getInstance();
        var lookup = CLinker.systemLookup();
        MethodHandle labs = linker.downcallHandle(
            lookup.lookup("labs").orElseThrow(),
            MethodType.methodType(long.class, long.class),
            FunctionDescriptor.of(CLinker.C_LONG, CLinker.C_LONG));
        MethodHandle qsort = linker.downcallHandle(
            lookup.lookup("qsort").orElseThrow(),
            MethodType.methodType(void.class, MemoryAddress.class, long.class, long.class, MemoryAddress.class),
            FunctionDescriptor.ofVoid(CLinker.C_POINTER, CLinker.C_LONG, CLinker.C_LONG, CLinker.C_POINTER));
        var type = MethodType.methodType(int.class, MemoryAddress.class, MemoryAddress.class);
        var compare = MethodHandles.lookup().findStatic(ForeignCalls.class, "compare", type);
        var scope = ResourceScope.globalScope();
        var descriptor = FunctionDescriptor.of(CLinker.C_INT, CLinker.C_POINTER, CLinker.C_POINTER);
        MemoryAddress stub = linker.upcallStub(compare, descriptor, scope);
        var segment = MemorySegment.allocateNative(8, scope);
        MemoryAccess.setIntAtOffset(segment, 0, 1);
        var memory = new Memory(8);
        Comparison comparison = (left, right) -> 0;

        measure("JNA, call", count -> {
            for (var at = 0; at < count; at++) Direct.labs(at);
        });
        measure("Panama, call", count -> {
            try {
                for (var at = 0L; at < count; at++) {
                    long ignored = (long) labs.invokeExact(at);
                }
            } catch (Throwable error) {
                throw new AssertionError(error);
            }
        });
        measure("JNA, call and call back", count -> {
            for (var at = 0; at < count; at++) Direct.qsort(memory, 2, 4, comparison);
        });
        measure("Panama, call and call back", count -> {
            try {
                for (var at = 0; at < count; at++) qsort.invokeExact(segment.address(), 2L, 4L, stub);
            } catch (Throwable error) {
                throw new AssertionError(error);
            }
        });
    }

    /** Prints the median of this thread's CPU time per call, after rounds that only warm up. */
    private static void measure(String name, IntConsumer calls) {
        var clock = ManagementFactory.getThreadMXBean();
        var rounds = new long[ROUNDS];
        for (var round = -ROUNDS; round < ROUNDS; round++) {
            var begun = clock.getCurrentThreadCpuTime();
            calls.accept(CALLS);
            if (round >= 0) rounds[round] = clock.getCurrentThreadCpuTime() - begun;
        }
        Arrays.sort(rounds);
        System.out.printf("%s: %,.0f ns%n", name, (double) rounds[ROUNDS / 2] / CALLS);
    }
}
