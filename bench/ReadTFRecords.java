import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.tensorflow.hadoop.io.TFRecordFileInputFormat;
import org.tensorflow.hadoop.io.TFRecordFileOutputFormat;

/**
 * Reads (`read FILE SECONDS`) or writes (`write FOLDER RECORD_BYTES RECORDS`) a TFRecord file in this thread, through
 * the Hadoop formats of the jar on the class path: this one's or the original's. Prints bytes, records and a sum of
 * the records' bytes, then seconds of processor time: of the fastest pass.
 */
public final class ReadTFRecords {
  public static void main(String[] args) throws Exception {
    if (args[0].equals("write"))
      write(args[1], Integer.parseInt(args[2]), Long.parseLong(args[3]));
    else
      read(new Path(args[1]), Double.parseDouble(args[2]));
  }

  /** Of all threads, so that what other programs do on the machine counts little. */
  private static double processorSeconds() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
  }

  private static void read(Path path, double seconds) throws Exception {
    Configuration conf = new Configuration();
    long size = path.getFileSystem(conf).getFileStatus(path).getLen();
    long begin = System.nanoTime();
    double best = Double.MAX_VALUE;
    String found = "";
    for (int pass = 0; pass < 4 || System.nanoTime() - begin < seconds * 1e9; pass++) {
      double start = processorSeconds();
      TaskAttemptContext context = new TaskAttemptContextImpl(conf, new TaskAttemptID());
      FileSplit split = new FileSplit(path, 0, size, null);
      long records = 0;
      long sum = 0;
      try (RecordReader<BytesWritable, NullWritable> in =
               new TFRecordFileInputFormat().createRecordReader(split, context)) {
        in.initialize(split, context);
        for (; in.nextKeyValue(); records++) {
          BytesWritable record = in.getCurrentKey();
          sum += record.getLength() + (record.getLength() > 0 ? record.getBytes()[record.getLength() / 2] : 0);
        }
      }
      best = Math.min(best, processorSeconds() - start);
      found = size + " " + records + " " + sum;
    }
    System.out.println(found + " " + best);
  }

  private static void write(String folder, int bytes, long records) throws Exception {
    Job job = Job.getInstance();
    job.getConfiguration().set("mapreduce.fileoutputcommitter.algorithm.version", "2"); // part files in place at once
    FileOutputFormat.setOutputPath(job, new Path(folder));
    TaskAttemptContext context = new TaskAttemptContextImpl(job.getConfiguration(), new TaskAttemptID());
    BytesWritable record = new BytesWritable(new byte[bytes]);
    new Random(1).nextBytes(record.getBytes());
    double start = processorSeconds();
    TFRecordFileOutputFormat format = new TFRecordFileOutputFormat();
    RecordWriter<BytesWritable, NullWritable> out = format.getRecordWriter(context);
    for (long i = 0; i < records; i++) out.write(record, NullWritable.get());
    out.close(context);
    double taken = processorSeconds() - start;
    format.getOutputCommitter(context).commitTask(context);
    System.out.println(records * (bytes + 16) + " " + records + " 0 " + taken);
  }
}
