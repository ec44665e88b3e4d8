import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs classes of tests, and prints the outcome of each test in a line of its own. */
public class Outcomes extends RunListener {
  private String outcome;

  @Override
  public void testStarted(Description d) {
    outcome = "passed";
  }

  @Override
  public void testFailure(Failure f) {
    outcome = "failed";
    System.out.println(f.getTrace());
    if (f.getDescription().isSuite()) {
      testFinished(f.getDescription());
    }
  }

  @Override
  public void testAssumptionFailure(Failure f) {
    outcome = "skipped";
  }

  @Override
  public void testIgnored(Description d) {
    outcome = "skipped";
    testFinished(d);
  }

  @Override
  public void testFinished(Description d) {
    System.out.println("\n" + outcome + " \001 " + d.getDisplayName());
    System.out.flush();
  }

  public static void main(String[] classes) throws Exception {
    JUnitCore core = new JUnitCore();
    core.addListener(new Outcomes());
    for (String c : classes) {
      core.run(Class.forName(c));
    }
    System.exit(0);
  }
}
