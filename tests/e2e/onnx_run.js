// node onnx_run.js MODEL.onnx PREDICTIONS <ROWS: as onnx_run.py, computed by onnxruntime.
const fs = require('fs'), ort = require('onnxruntime-node');
const lines = text => text.trim().split('\n').map(line => JSON.parse(line));
(async () => {
  const session = await ort.InferenceSession.create(process.argv[2]);
  const rows = lines(fs.readFileSync(0, 'utf8')), said = lines(fs.readFileSync(process.argv[3], 'utf8'));
  const input = new ort.Tensor('float32', Float32Array.from(rows.flat(), x => x === null ? NaN : x), [rows.length, rows[0].length]);
  const out = await session.run({input}), answers = out.probabilities || out.values, width = answers.dims[1];
  if (answers.dims[0] !== said.length) throw new Error(`${answers.dims[0]} answers, ${said.length} predictions`);
  let difference = 0, wrong = 0;
  said.forEach((record, i) => {
    const told = record.probabilities || record.values || [record.value];
    told.forEach((value, j) => { difference = Math.max(difference, Math.abs(value - answers.data[i * width + j])); });
    if (out.class && Number(out.class.data[i]) !== record.class) wrong++;
  });
  console.log(`difference=${difference} wrong=${wrong}`);
})().catch(error => { console.error(error); process.exit(1); });
